package brokertest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"mqlab/brokers"
)

// The names of the children, by how they end.
const (
	exitBeforeAck = "exit-before-ack"
	exitAfterAck  = "exit-after-ack"
	waitForSignal = "wait-for-signal"
)

// What a child is told. The address holds a password, which is why it does
// not stand on the command line.
const (
	envAddress     = "MQLAB_BROKERTEST_ADDRESS"
	envDestination = "MQLAB_BROKERTEST_DESTINATION"
	envSuffix      = "MQLAB_BROKERTEST_SUFFIX"
	envConsumer    = "MQLAB_BROKERTEST_CONSUMER"
)

// exitHalt is what a process killed by SIGKILL would show in a shell; a role
// that is halted ends with it too.
const exitHalt = 137

// Child is the other side of Subject.Child, to be called from TestMain with
// the name that Subject.Child was given, or "": it consumes one message, says
// so on stdout and ends the process as the case wants. handled is false when
// there is no name, and otherwise it does not return.
func Child(ctx context.Context, d brokers.Driver, name string) (handled bool) {
	if name == "" {
		return false
	}
	err := child(ctx, d, name)
	fmt.Fprintf(os.Stderr, "brokertest child %s: %v\n", name, err)
	os.Exit(1)
	return true
}

// child returns only when it has not come to the end that it is named after.
func child(ctx context.Context, d brokers.Driver, name string) error {
	at, err := brokers.ParseAddress(os.Getenv(envAddress))
	if err != nil {
		return err
	}
	var dest brokers.Destination
	if err := json.Unmarshal([]byte(os.Getenv(envDestination)), &dest); err != nil {
		return fmt.Errorf("read %s: %w", envDestination, err)
	}
	dest.Suffix = os.Getenv(envSuffix)
	var o brokers.ConsumerOptions
	if err := json.Unmarshal([]byte(os.Getenv(envConsumer)), &o); err != nil {
		return fmt.Errorf("read %s: %w", envConsumer, err)
	}
	c, err := d.OpenConsumer(ctx, at, dest, o)
	if err != nil {
		return err
	}
	m, err := c.Receive(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(show(m)); err != nil {
		return err
	}
	switch name {
	case exitBeforeAck:
		os.Exit(exitHalt)
	case exitAfterAck:
		if err := m.Ack(ctx); err != nil {
			return err
		}
		os.Exit(exitHalt)
	case waitForSignal:
		// stdin is the lifeline: should the parent go first, it ends.
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		return fmt.Errorf("no signal came")
	}
	return fmt.Errorf("no child has this name")
}

// process is a child as its parent sees it.
type process struct {
	sc       *scene
	cmd      *exec.Cmd
	received string // what it said about its delivery
}

// child starts one and waits until it has said what it received.
func (sc *scene) child(name string) *process {
	sc.Helper()
	if sc.s.Child == nil {
		sc.skip("the subject has no way to start a child")
	}
	dest, err := json.Marshal(sc.dest)
	sc.must(err)
	options, err := json.Marshal(sc.consumerOptions("c", 1))
	sc.must(err)
	cmd := sc.s.Child(sc.ctx, name, envAddress+"="+sc.s.Address.Secret(), envConsumer+"="+string(options),
		envDestination+"="+string(dest), envSuffix+"="+sc.dest.Suffix)
	cmd.Stderr = sc.Output()
	_, err = cmd.StdinPipe() // held open until Wait
	sc.must(err)
	out, err := cmd.StdoutPipe()
	sc.must(err)
	sc.must(cmd.Start())
	sc.Cleanup(func() {
		if cmd.ProcessState == nil { // the case failed before it came to the end
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		sc.Fatalf("the child %s said nothing: %v", name, err)
	}
	return &process{sc, cmd, strings.TrimSpace(line)}
}

// end waits for the child's end, after a signal if there is one, and says what
// it was.
func (p *process) end(sig os.Signal) string {
	p.sc.Helper()
	want := fmt.Sprint("exit status ", exitHalt)
	if sig != nil {
		if runtime.GOOS == "windows" && sig != os.Kill {
			p.sc.skip("Windows knows no signal but kill")
		}
		want = "signal: " + sig.String()
		p.sc.must(p.cmd.Process.Signal(sig))
	}
	_ = p.cmd.Wait() // a violent end is an error to Wait
	got := p.cmd.ProcessState.String()
	if got != want && runtime.GOOS != "windows" { // where a kill is an exit status
		p.sc.Fatalf("the child ended with %s, want %s", got, want)
	}
	return want
}
