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

// rabbitmqRecipe starts the installed RabbitMQ.
type rabbitmqRecipe struct{}

func (rabbitmqRecipe) missing() error {
	_, err := rabbitmqServer()
	if err == nil {
		_, err = epmd()
	}
	return err
}

// rabbitmqServer finds the real start script: of RABBITMQ_HOME, else of the
// Debian package, whose command on the PATH is a wrapper that changes the user.
func rabbitmqServer() (string, error) {
	if home := os.Getenv("RABBITMQ_HOME"); home != "" {
		path := filepath.Join(home, "sbin", "rabbitmq-server")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: RABBITMQ_HOME is set, but there is no %s", ErrMissing, path)
		}
		return path, nil
	}
	const debian = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	if path, err := exec.LookPath("rabbitmq-server"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: no rabbitmq-server is installed (apt-get install --no-install-recommends rabbitmq-server, or set RABBITMQ_HOME)", ErrMissing)
}

func epmd() (string, error) {
	path, err := exec.LookPath("epmd")
	if err != nil {
		return "", fmt.Errorf("%w: no epmd is on the PATH; it comes with Erlang", ErrMissing)
	}
	return path, nil
}

func (rabbitmqRecipe) node(_ context.Context, dir string) (*node, error) {
	server, err := rabbitmqServer()
	if err != nil {
		return nil, err
	}
	names, err := epmd()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	amqp, admin, dist, epmdPort := ports[0], ports[1], ports[2], ports[3]
	err = configure("rabbitmq", dir, map[string]string{"AMQP_PORT": strconv.Itoa(amqp), "ADMIN_PORT": strconv.Itoa(admin)}, "rabbitmq.conf", "enabled_plugins")
	if err != nil {
		return nil, err
	}
	env := []string{"PATH=" + os.Getenv("PATH") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8",
		fmt.Sprintf("RABBITMQ_NODENAME=mqlab%d@localhost", amqp), // unique on this machine while it runs
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(dist),
		"ERL_EPMD_PORT=" + strconv.Itoa(epmdPort), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"), "RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		// The default, none, makes a start two to three times as long here.
		"RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD=short", "RABBITMQ_ALLOW_INPUT=1", "RABBITMQ_LOG=-color",
		// quorum_tick_interval bounds the age of a quorum queue's numbers, in ms.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +A 4 -kernel inet_dist_use_interface {127,0,0,1} -rabbit quorum_tick_interval 200"}
	at, err := brokers.ParseAddress(fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/?management=http%%3A%%2F%%2F127.0.0.1%%3A%d", amqp, admin))
	// epmd in the foreground and in the broker's group: started by the broker it
	// would be a daemon that outlives it.
	commands := [][]string{{names, "-port", strconv.Itoa(epmdPort), "-address", "127.0.0.1"}, {server, "-noinput"}}
	return &node{spec: guardSpec{Dir: dir, Env: env, Commands: commands}, at: at, listens: []int{amqp, admin}}, err
}
