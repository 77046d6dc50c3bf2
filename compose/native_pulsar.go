package compose

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mqlab/brokers"
)

// pulsarBroker is Pulsar standalone: broker, bookie and metadata store in one
// process.
func pulsarBroker() distribution {
	flags := []string{"-Xms64m", "-Xmx384m", "-XX:MaxDirectMemorySize=384m"}
	// As in the product's own start script.
	for _, p := range strings.Fields("java.base/java.nio java.base/jdk.internal.misc java.base/sun.net java.base/java.lang java.base/java.io java.base/java.util.zip java.management/sun.management jdk.management/com.sun.management.internal") {
		flags = append(flags, "--add-opens", p+"=ALL-UNNAMED")
	}
	return distribution{product: "pulsar", version: "4.2.4", homeVar: "PULSAR_HOME", homeLib: "lib", flags: flags,
		foreign: []string{"-aarch_64.jar", "-osx", "-windows"}, arrange: arrangePulsar}
}

func arrangePulsar(_ context.Context, j *jvm, dir string) ([]string, *node, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, nil, err
	}
	if err := configure("pulsar", dir, map[string]string{"PORT": strconv.Itoa(ports[0]), "ADMIN_PORT": strconv.Itoa(ports[1])}, "standalone.conf", "log4j2.properties"); err != nil {
		return nil, nil, err
	}
	// Libraries are unpacked into the folder for temporary files and left there.
	j.flags = append(slices.Clone(j.flags), "-Djava.io.tmpdir="+dir, "-Dlog4j2.configurationFile="+filepath.Join(dir, "log4j2.properties"))
	at, err := brokers.ParseAddress(fmt.Sprintf("pulsar://127.0.0.1:%d?admin=http%%3A%%2F%%2F127.0.0.1%%3A%d", ports[0], ports[1]))
	return []string{"org.apache.pulsar.PulsarStandaloneStarter", "-c", filepath.Join(dir, "standalone.conf"),
			"--metadata-dir", filepath.Join(dir, "data", "meta"), "--bookkeeper-dir", filepath.Join(dir, "data", "bk"), "--bookkeeper-port", strconv.Itoa(ports[2]),
			"-nfw", "-nss", "-a", "127.0.0.1"},
		&node{at: at, listens: ports[:2]}, err
}
