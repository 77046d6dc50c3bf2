package compose

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"mqlab/brokers"
)

// rocketmqBroker is RocketMQ's name server and broker in one process.
func rocketmqBroker() distribution {
	return distribution{product: "rocketmq", version: "5.4.0", homeVar: "ROCKETMQ_HOME", homeLib: "lib",
		flags: []string{"-Xms64m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m", "-Dtls.server.mode=disabled",
			// An orderly consumer's queue lock outlives its owner for so long, in ms.
			"-Drocketmq.broker.rebalance.lockMaxLiveTime=5000"},
		arrange: arrangeRocketMQ, after: compileNode}
}

func arrangeRocketMQ(ctx context.Context, j *jvm, dir string) ([]string, *node, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, nil, err
	}
	broker, err := portPair()
	if err != nil {
		return nil, nil, err
	}
	values := map[string]string{"PORT": strconv.Itoa(ports[0]), "HA_PORT": strconv.Itoa(ports[1]), "BROKER_PORT": strconv.Itoa(broker), "DATA": filepath.Join(dir, "data")}
	if err := configure("rocketmq", dir, values, "broker.conf", "namesrv.conf"); err != nil {
		return nil, nil, err
	}
	main := filepath.Join(j.cache, nodeJar)
	if j.cache == "" || !exists(main) {
		if err := compileNode(ctx, j, dir); err != nil {
			return nil, nil, err
		}
		main = filepath.Join(dir, nodeJar)
	}
	j.jars = append([]string{main}, j.jars...)
	// Both programs write below the home folder; the broker rewrites its
	// configuration.
	j.flags = append(slices.Clone(j.flags), "-Duser.home="+dir, "-Drocketmq.home.dir="+dir)
	at, err := brokers.ParseAddress(fmt.Sprintf("rocketmq://127.0.0.1:%d", ports[0]))
	return []string{"Node", filepath.Join(dir, "namesrv.conf"), filepath.Join(dir, "broker.conf")},
		&node{at: at, listens: []int{ports[0], broker}, nudge: func(ctx context.Context) error { return register(ctx, broker) }}, err
}

// register makes the broker tell the name server of itself, which it otherwise
// does only every ten seconds: each change of its configuration does (request
// 25, UPDATE_BROKER_CONFIG, of org.apache.rocketmq.remoting.protocol.RequestCode).
func register(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var n net.Dialer
	c, err := n.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	defer c.Close()                                      //nolint:errcheck // one answer is all that is wanted
	stop := context.AfterFunc(ctx, func() { c.Close() }) //nolint:errcheck // cutting it ends the waiting
	defer stop()
	const header, body = `{"code":25,"language":"OTHER","version":0,"opaque":1,"flag":0}`, "brokerPermission=6"
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := c.Write(frame); err != nil {
		return fmt.Errorf("make the broker register: %w", err)
	}
	if _, err := io.ReadFull(c, frame[:4]); err != nil {
		return fmt.Errorf("make the broker register: %w", err)
	}
	return nil
}

// portPair finds a free port whose second neighbour below is free too: RocketMQ
// takes both.
func portPair() (int, error) {
	ports, err := freePorts(64)
	if err != nil {
		return 0, err
	}
	for _, p := range ports {
		if free(p - 2) {
			return p, nil
		}
	}
	return 0, errors.New("find a free port: none has a free second neighbour")
}

// compileTimeout bounds the compilation, which takes about a second.
const compileTimeout = time.Minute

// nodeJar has the main class.
const nodeJar = "node.jar"

// compileNode compiles the main class that starts both.
func compileNode(ctx context.Context, j *jvm, dir string) error {
	javac := filepath.Join(filepath.Dir(j.java), "javac")
	if !exists(javac) {
		return fmt.Errorf("%w: there is no javac beside %s (%s)", ErrMissing, j.java, javaHelp)
	}
	if err := configure("rocketmq", dir, nil, "Node.java"); err != nil {
		return err
	}
	source, class := filepath.Join(dir, "Node.java"), filepath.Join(dir, "Node.class")
	args, err := argsFile(dir, "-d", dir, "-cp", classPath(j.jars), source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, javac, args).CombinedOutput(); err != nil {
		return fmt.Errorf("compile the main class of rocketmq: %w: %s", err, brokers.LastWords(out))
	}
	b, err := os.ReadFile(class)
	if err != nil {
		return fmt.Errorf("compile the main class of rocketmq: %w", err)
	}
	return errors.Join(writeNodeJar(filepath.Join(dir, nodeJar), b), os.Remove(source), os.Remove(class))
}

// writeNodeJar packs the class: an archive of classes takes none from a folder.
func writeNodeJar(path string, class []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	w, err := z.Create("Node.class")
	if err == nil {
		_, err = w.Write(class)
	}
	return errors.Join(err, z.Close(), f.Close())
}
