package compose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"mqlab/brokers"
)

// kafkaBroker is Kafka as one node that is broker and controller.
func kafkaBroker() distribution {
	return distribution{product: "kafka", version: "4.4.0", homeVar: "KAFKA_HOME", homeLib: "libs",
		flags:   []string{"-Xms32m", "-Xmx160m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"},
		arrange: arrangeKafka, after: formatKafka}
}

// kafkaTemplate, in the installed distribution's folder, is a formatted store:
// formatting takes longer than the whole start.
const kafkaTemplate = "formatted"

func arrangeKafka(ctx context.Context, j *jvm, dir string) ([]string, *node, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(dir, "data")
	if err := configureKafka(dir, data, ports[0], ports[1]); err != nil {
		return nil, nil, err
	}
	template := filepath.Join(j.cache, kafkaTemplate)
	if j.cache != "" && exists(template) {
		err = os.CopyFS(data, os.DirFS(template))
	} else {
		err = j.formatKafka(ctx, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	at, err := brokers.ParseAddress(fmt.Sprintf("kafka://127.0.0.1:%d", ports[0]))
	return []string{"kafka.Kafka", filepath.Join(dir, "server.properties")}, &node{at: at, listens: ports[:1]}, err
}

func configureKafka(dir, data string, port, controller int) error {
	return configure("kafka", dir, map[string]string{"PORT": strconv.Itoa(port), "CONTROLLER_PORT": strconv.Itoa(controller), "DATA": data}, "server.properties")
}

// formatKafka makes an empty store as server.properties in dir says.
func (j *jvm) formatKafka(ctx context.Context, dir string) error {
	quick := &jvm{java: j.java, jars: j.jars, flags: j.flags}
	argv, err := quick.command(dir, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", filepath.Join(dir, "server.properties"))
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("format the store of kafka: %w: %s", err, brokers.LastWords(out))
	}
	return nil
}

// formatKafka makes the template.
func formatKafka(ctx context.Context, j *jvm, dir string) error {
	if err := configureKafka(dir, filepath.Join(dir, kafkaTemplate), 9092, 9093); err != nil { // the ports are of no account
		return err
	}
	return j.formatKafka(ctx, dir)
}
