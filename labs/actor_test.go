package labs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mqlab/gate"
)

// partRole is the part of a role's process.
const partRole = "role"

// script is what the decoy roles of one run do: by step, one act a line.
type script struct {
	World string              `json:"world"` // the folder where roles and broker meet
	Acts  map[string][]string `json:"acts"`
}

// actor is a decoy role: it speaks the gate's protocol and the log's grammar,
// and does the rest by the book of its script.
type actor struct {
	step, role string
	world      string
	gate       *gate.Client
	mu         sync.Mutex // keeps lines whole
	under      sync.WaitGroup
}

// act is the whole life of a decoy role.
func act(args []string) int {
	flags := map[string]string{}
	for i := 2; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	b, err := os.ReadFile(flags["--script"])
	var s script
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 64
	}
	a := &actor{step: flags["--step"], role: args[1], world: s.World, gate: &gate.Client{}}
	a.tell("pid-"+a.step, os.Getpid())
	acts := s.Acts[a.step]
	if len(acts) == 0 || acts[0] != "stranger" {
		if a.gate, err = gate.Dial(context.Background(), a.step, func(error) { os.Exit(gate.ExitGateLost) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for _, line := range acts {
		if code := a.do(strings.Fields(line)); code >= 0 {
			return code
		}
	}
	return 0
}

// do is one act; a result that is not negative ends the process.
func (a *actor) do(w []string) int {
	switch w[0] {
	case "stranger":
	case "log": // log WORD [FIXTURE]
		a.log(w[1], w[2:]...)
	case "reach": // reach CHECKPOINT FIXTURE
		a.reach(w[1], w[2])
	case "meanwhile": // meanwhile reach CHECKPOINT FIXTURE
		a.under.Go(func() { a.reach(w[2], w[3]) })
	case "join":
		a.under.Wait()
	case "finish": // wait for the runner's word, then end in order
		<-a.gate.Finishing()
		a.tell("finished-"+a.step, int(time.Now().UnixNano()))
		a.log("done")
	case "left": // left N: what the broker still owes
		n, err := strconv.Atoi(w[1])
		if err != nil {
			return 64
		}
		a.tell("left", n)
	case "await": // await FILE: until another role or the test has told it
		for !exists(filepath.Join(a.world, w[1])) {
			time.Sleep(time.Millisecond)
		}
	case "tell":
		a.tell(w[1], 1)
	case "trap": // SIGTERM ends in order
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		go func() { <-c; a.log("stopping"); a.tell("trapped-"+a.step, 1) }()
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGQUIT)
	case "hang":
		time.Sleep(time.Hour)
	case "raise":
		n, _ := strconv.Atoi(w[1])
		syscall.Kill(os.Getpid(), syscall.Signal(n)) //nolint:errcheck // the exit shows it
		time.Sleep(time.Hour)
	case "exit":
		n, _ := strconv.Atoi(w[1])
		return n
	case "write":
		a.write(strings.Join(w[1:], " ") + "\n")
	case "long": // long BYTES: one line
		n, _ := strconv.Atoi(w[1])
		a.write(strings.Repeat("x", n) + "\n")
	case "binary":
		all := make([]byte, 1024)
		for i := range all {
			all[i] = byte(i)
		}
		a.write(string(all))
		a.write(string([]byte{0xff, 0xfe, 0, '\r', '\n', '['}))
		a.write("consumer] status=\n")
	case "chatter": // a line every millisecond until the end
		go func() {
			for {
				a.write("still here\n")
				time.Sleep(time.Millisecond)
			}
		}()
	case "grandchild": // it keeps the output open
		c := exec.Command("sleep", "300")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return 1
		}
		a.tell("pid-grandchild", c.Process.Pid)
	default:
		fmt.Fprintf(os.Stderr, "no act is called %q\n", w[0])
		return 64
	}
	return -1
}

// reach stands at a checkpoint as a role does: line, arrival, decision.
func (a *actor) reach(cp, fixture string) {
	if !a.gate.Stops(gate.Checkpoint(cp)) {
		return
	}
	at := a.gate.Next(gate.Checkpoint(cp), "id-"+fixture, fixture)
	pairs := []Pair{{"checkpoint", cp}, {"messageId", at.Message}, {"token", Token(a.step, os.Getpid(), at)}}
	say := func(status string) {
		a.write(Line{Prefix: "replay-gate", Pairs: append(pairs[:3:3], Pair{"status", status})}.String() + "\n")
	}
	say("waiting")
	decision, err := a.gate.Wait(context.Background(), at)
	if err != nil {
		os.Exit(gate.ExitGateLost)
	}
	say("released")
	switch decision {
	case gate.Halt:
		a.log("crash_injected", fixture)
		os.Exit(gate.ExitHalt)
	case gate.Fail:
		a.log("business_failed", fixture)
	}
}

func (a *actor) log(status string, fixture ...string) {
	prefix := a.role
	if prefix == RoleInspectDB {
		prefix = "inspect"
	}
	l := Line{Prefix: prefix, Pairs: []Pair{{"product", "rabbitmq"}, {"lab", "decoy"}}}
	for _, f := range fixture {
		l.Pairs = append(l.Pairs, Pair{"messageId", "id-" + f}, Pair{"aggregateId", f})
	}
	l.Pairs = append(l.Pairs, Pair{"status", status})
	a.write(l.String() + "\n")
}

func (a *actor) write(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	os.Stdout.WriteString(s) //nolint:errcheck // a reader that is gone is what some scenes are about
}

// tell leaves a number in the world, whole.
func (a *actor) tell(name string, n int) {
	tmp := filepath.Join(a.world, "."+name+"-"+a.step)
	if err := os.WriteFile(tmp, []byte(strconv.Itoa(n)), 0o644); err == nil {
		os.Rename(tmp, filepath.Join(a.world, name)) //nolint:errcheck // its reader times out
	}
}

// told reads a number that a role left in the world; 0 when there is none.
func told(world, name string) int {
	b, err := os.ReadFile(filepath.Join(world, name))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		return 0
	}
	return n
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
