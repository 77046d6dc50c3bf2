package labs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A row is one mistake. from is what stands in the good scenario, to takes its
// place; place is where the mistake is shown, as the text under the caret.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	const good = `summary: a scene
destination: {queue: orders}
messages: [order-1001, order-1002]
consumer: {design: transactional-dedupe}
steps:
  - {name: setup}
  - {name: producer}
  - {name: consumer-a, role: consumer, background: true}
  - {name: consumer-b, role: consumer}
  - {name: inspect-db}
`
	const b = "{name: consumer-b, role: consumer}"
	tests := map[string]struct{ from, to, want, place string }{
		"no summary":                          {"summary: a scene", "summary: ' '", "summary is missing", "' '"},
		"no destination":                      {"destination: {queue: orders}\n", "", "destination.queue is missing", ""},
		"a capability":                        {"steps:", "requires: [durabel]\nsteps:", `no capability is named "durabel"; did you mean "durable"?`, "durabel"},
		"no steps":                            {good[strings.Index(good, "steps:"):], "steps: []\n", "at least one step", "["},
		"a step's name":                       {b, "{name: Consumer_B, role: consumer}", "kebab-case", "Consumer_B"},
		"a step's name that is a path":        {b, "{name: ../b, role: consumer}", "kebab-case", "../b"},
		"a step's name that is long":          {b, "{name: " + strings.Repeat("b", 65) + ", role: consumer}", "longer than 64", "bbbb"},
		"the report's name":                   {b, "{name: assert, role: consumer}", "assert.out.txt", "assert"},
		"two steps of one name":               {"consumer-b", "consumer-a", `a second step is named "consumer-a"`, "consumer-a"},
		"a role":                              {b, "{name: consumer-b, role: consumr}", `no role is named "consumr"; did you mean "consumer"?`, "consumr"},
		"a step that is no role":              {b, "{name: consumer-b}", `no role is named "consumer-b"`, "consumer-b"},
		"role and inspect":                    {b, "{name: consumer-b, role: consumer, inspect: broker}", "a step has one of role, inspect and broker", "name"},
		"what is inspected":                   {b, "{name: consumer-b, inspect: queue}", "only broker can be inspected", "queue"},
		"a design":                            {"design: transactional-dedupe", "design: transactional-dedup", `no design is named "transactional-dedup"; did you mean "transactional-dedupe"?`, "transactional-dedup"},
		"a design of a step":                  {b, "{name: consumer-b, role: consumer, consumer: {design: memory}}", `no design is named "memory"`, "memory"},
		"a dedupe key":                        {"design: transactional-dedupe", "key: messageID", `did you mean "messageId"?`, "messageID"},
		"a store's name":                      {"design: transactional-dedupe", "store: ../orders", "store is in kebab-case", "../orders"},
		"a consumer's name":                   {"design: transactional-dedupe", "name: C 1", "name is in kebab-case", "C 1"},
		"a prefetch":                          {"design: transactional-dedupe", "prefetch: -1", "prefetch is between", "-1"},
		"a heartbeat in parts of a second":    {"design: transactional-dedupe", "heartbeat: 1500ms", "heartbeat is in whole seconds, not 1.5s", "1500ms"},
		"a prefetch that is too large":        {"design: transactional-dedupe", "prefetch: 10001", "prefetch is between", "10001"},
		"a consumer's settings in a producer": {"{name: producer}", "{name: producer, consumer: {name: c}}", "settings of a consumer in a step that is none", "name"},
		"a producer's settings in a consumer": {b, "{name: consumer-b, role: consumer, producer: {transient: true}}", "settings of a producer in a step that is none", "transient"},
		"until in a producer":                 {"{name: producer}", "{name: producer, until: {received: 1}}", "only a consumer ends by a count", "received"},
		"until nothing":                       {b, "{name: consumer-b, role: consumer, until: {received: 0}}", "until.received is at least 1", "0"},
		"while-running in a consumer":         {b, "{name: consumer-b, role: consumer, while-running: true}", "only a step that inspects", "true"},
		"a store in a consumer":               {b, "{name: consumer-b, role: consumer, store: orders}", "only inspect-db reads a store", "orders"},
		"a store that nobody has":             {"{name: inspect-db}", "{name: inspect-db, store: other}", `no consumer has the store "other"`, "name"},
		"no messages":                         {"messages: [order-1001, order-1002]\n", "", "the producer has no messages", "name"},
		"no messages, in brackets":            {"[order-1001, order-1002]", "[]", "the producer has no messages", "name"},

		"a pause without an end":         {b, "{name: p, broker: pause}", "the broker is never resumed", "pause"},
		"a disconnect without an end":    {b, "{name: off, broker: disconnect}", "the broker is never connected again", "disconnect"},
		"a connect of what is connected": {b, "{name: on, broker: connect}", "connect: the broker runs then", "connect"},
		"a kill of what is off":          {b, "{name: off, broker: disconnect}\n  - {name: k, broker: kill}\n  - {name: on, broker: connect}", "kill: the broker is off the network then", "kill"},

		"a checkpoint":               {b, "{name: consumer-b, role: consumer, halt: {at: befor-ack}}", `no checkpoint is named "befor-ack"; did you mean "before-ack"?`, "befor-ack"},
		"no checkpoint":              {b, "{name: consumer-b, role: consumer, halt: {message: order-1001}}", `no checkpoint is named ""`, "message"},
		"a design's checkpoint":      {b, "{name: consumer-b, role: consumer, consumer: {design: no-dedupe}, halt: {at: after-claim}}", "the design no-dedupe never passes after-claim; it passes after-delivery", "after-claim"},
		"a producer's checkpoint":    {"{name: producer}", "{name: producer, halt: {at: before-ack}}", "a producer never passes before-ack", "before-ack"},
		"a consumer's checkpoint":    {b, "{name: consumer-b, role: consumer, halt: {at: before-publish}}", "never passes before-publish", "before-publish"},
		"a fault where none is":      {"{name: setup}", "{name: setup, halt: {at: before-ack}}", "the role setup has no checkpoints", "before-ack"},
		"a fault of an inspection":   {"{name: inspect-db}", "{name: inspect-now, inspect: broker, halt: {at: before-ack}}", "a step without a role has no checkpoints", "before-ack"},
		"a message":                  {b, "{name: consumer-b, role: consumer, halt: {at: before-ack, message: order-1003}}", `no message of this scenario is named "order-1003"`, "order-1003"},
		"an arrival":                 {b, "{name: consumer-b, role: consumer, halt: {at: before-ack, arrival: -1}}", "arrivals count from 1", "-1"},
		"a way to halt":              {b, "{name: consumer-b, role: consumer, halt: {at: before-ack, how: kil}}", `no way to halt is named "kil"; did you mean "kill"?`, "kil"},
		"a producer that fails":      {"{name: producer}", "{name: producer, fail: {at: before-publish}}", "only a consumer's handler can fail", "at"},
		"failing less than once":     {b, "{name: consumer-b, role: consumer, fail: {at: before-ack, times: -2}}", "times is at least 1", "-2"},
		"a hold without end":         {b, "{name: consumer-b, role: consumer, hold: {at: before-ack}}", "can never end", "at"},
		"a freeze without end":       {b, "{name: consumer-b, role: consumer, freeze: {at: before-ack}}", "can never end", "at"},
		"a freeze with a halt":       {b, "{name: consumer-b, role: consumer, freeze: {at: before-ack}, halt: {at: after-ack}}", "can never end", "at"},
		"waiting for one's own end":  {b, "{name: consumer-b, role: consumer, hold: {at: before-ack, until: {step: consumer-b, exit: any}}}", "waits for its own end", "step"},
		"waiting for one's own done": {b, "{name: consumer-b, role: consumer, halt: {at: before-ack, when: {step: consumer-b, status: done}}}", "waits for its own end", "step"},
		"waiting for what comes after it": {"{name: producer}", "{name: producer, hold: {at: before-publish, until: {step: consumer-b, checkpoint: before-ack}}}",
			`"consumer-b" starts only after "producer" has ended`, "step"},
		"holding back a consumer's end": {b, "{name: consumer-b, role: consumer, hold: {at: before-ack, until: {step: consumer-a, exit: any}}}", "it never ends", "step"},
		"holding back an inspection": {b, "{name: consumer-b, role: consumer, background: true, hold: {at: before-ack, until: {step: inspect-db, exit: any}}}",
			"looks only when no consumer runs", "step"},
		"freezing until an inspection": {b, "{name: consumer-b, role: consumer, background: true, freeze: {at: before-ack, until: {step: inspect-db, exit: any}}}",
			"looks only when no consumer runs", "step"},
		"two writers": {b, "{name: consumer-b, role: consumer, hold: {at: before-commit, until: {step: consumer-a, checkpoint: before-ack}}}",
			`before-commit is inside the transaction, and "consumer-a" can write to the same store`, "before-commit"},
		"two writers, frozen": {b, "{name: consumer-b, role: consumer, freeze: {at: after-claim, until: {step: consumer-a, exit: any}}}", "it would wait for the lock", "after-claim"},

		"after itself":             {b, "{name: consumer-b, role: consumer, after: {step: consumer-b, exit: any}}", "the step would wait for itself", "consumer-b"},
		"after a later one":        {b, "{name: consumer-b, role: consumer, after: {step: inspect-db, exit: any}}", `the step would wait for "inspect-db", which comes later`, "inspect-db"},
		"after a step unknown":     {b, "{name: consumer-b, role: consumer, after: {step: consumr-a, exit: any}}", `no step is named "consumr-a"; did you mean "consumer-a"?`, "consumr-a"},
		"after nothing":            {b, "{name: consumer-b, role: consumer, after: {}}", "exactly one of checkpoint, status, exit and broker", "{"},
		"after two things":         {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, exit: any, status: done}}", "exactly one of", "step"},
		"after no step":            {b, "{name: consumer-b, role: consumer, after: {exit: any}}", "a condition names a step", "exit"},
		"a status word":            {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, status: recieved}}", `no status word is named "recieved"; did you mean "received"?`, "recieved"},
		"an exit":                  {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, exit: soon}}", `exit is a code or any, not "soon"`, "soon"},
		"an exit with a count":     {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, exit: any, count: 2}}", "an exit has no message and no count", "step"},
		"a count":                  {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, status: received, count: -1}}", "count is at least 1", "-1"},
		"a condition's message":    {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, status: received, message: order-9}}", `no message of this scenario is named "order-9"`, "order-9"},
		"a condition's checkpoint": {b, "{name: consumer-b, role: consumer, after: {step: producer, checkpoint: before-ack}}", "a producer never passes before-ack", "before-ack"},
		"a figure":                 {b, "{name: consumer-b, role: consumer, after: {broker: dept, is: 1}}", `no figure of rabbitmq is named "dept"; did you mean "depth"?`, "dept"},
		"a figure without a value": {b, "{name: consumer-b, role: consumer, after: {broker: depth}}", "`broker` and `is`", "broker"},
		"a figure of a step":       {b, "{name: consumer-b, role: consumer, after: {broker: depth, is: 1, step: producer}}", "`broker` and `is`, and no step", "broker"},
		"a value without a figure": {b, "{name: consumer-b, role: consumer, after: {step: consumer-a, exit: any, is: 1}}", "`is` goes with `broker`", "1"},
		"a message of a figure":    {b, "{name: consumer-b, role: consumer, after: {broker: depth, is: 1, message: order-1001}}", "no step", "broker"},
	}
	if err := labOf(t, good).Check(newFakeBroker("")); err != nil {
		t.Fatalf("the good scenario: %v", err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(good, tt.from) == 0 {
				t.Fatalf("%q is not in the good scenario", tt.from)
			}
			text := strings.Replace(good, tt.from, tt.to, 1)
			l, err := loadText(t, text)
			if err != nil {
				t.Fatalf("it was refused before the check: %v", err)
			}
			err = l.Check(newFakeBroker(""))
			checkMistake(t, text, err, tt.want, tt.place)
		})
	}
}

// checkMistake demands a mistake with that message, shown at that place.
func checkMistake(t *testing.T, text string, err error, want, place string) {
	t.Helper()
	for _, e := range all(err) {
		if !strings.Contains(e.Message, want) {
			continue
		}
		if place == "" {
			return
		}
		if e.Line == 0 {
			t.Errorf("%v has no place, want %q", e, place)
			return
		}
		line := strings.Split(text, "\n")[e.Line-1]
		if e.Col < 1 || e.Col > len(line) || !strings.HasPrefix(line[e.Col-1:], place) {
			t.Errorf("%v\nshows %q, want %q", e, line[min(max(0, e.Col-1), len(line)):], place)
		}
		if !strings.Contains(e.Error(), fmt.Sprintf("decoy.yaml:%d:%d: ", e.Line, e.Col)) || !strings.Contains(e.Excerpt, "^") {
			t.Errorf("%v has no place or no excerpt", e)
		}
		return
	}
	t.Errorf("Check: %v\nwant %q", err, want)
}

// all are the mistakes that an error joins.
func all(err error) []*FileError {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		var es []*FileError
		for _, e := range many.Unwrap() {
			es = append(es, all(e)...)
		}
		return es
	}
	var one *FileError
	if errors.As(err, &one) {
		return []*FileError{one}
	}
	return nil
}

// What the design allows, though it looks like a mistake.
func TestCheckAllows(t *testing.T) {
	t.Parallel()
	const top = "summary: a scene\ndestination: {queue: orders}\nmessages: [order-1001]\nsteps:\n  - {name: producer}\n"
	for name, steps := range map[string]string{
		"a freeze may wait for another's end":      "  - {name: consumer-a, role: consumer, background: true, freeze: {at: before-ack, until: {step: consumer-b, exit: any}}}\n  - {name: consumer-b, role: consumer, after: {step: consumer-a, checkpoint: before-ack}}\n",
		"a hold without end beside a halt":         "  - {name: consumer, consumer: {design: async-pool}, hold: {at: before-commit}, halt: {at: after-ack}}\n",
		"a hold inside with a store of its own":    "  - {name: consumer-a, role: consumer, background: true}\n  - {name: consumer-b, role: consumer, consumer: {store: other}, hold: {at: before-commit, until: {step: consumer-a, checkpoint: before-ack}}}\n",
		"a hold inside when the other comes later": "  - {name: consumer-a, role: consumer, hold: {at: before-commit, until: {broker: depth, is: 1}}}\n  - {name: consumer-b, role: consumer}\n",
		"a looking step while they run":            "  - {name: consumer, background: true, hold: {at: before-ack, until: {step: look, exit: any}}}\n  - {name: look, role: inspect-db, while-running: true, after: {step: consumer, checkpoint: before-ack}}\n",
		"several steps in one condition":           "  - {name: consumer-a, role: consumer, background: true}\n  - {name: consumer-b, role: consumer, background: true}\n  - {name: look, inspect: broker, after: {step: [consumer-a, consumer-b], exit: any}}\n",
		"an exit code as a number":                 "  - {name: consumer, halt: {at: before-ack}}\n  - {name: look, inspect: broker, after: {step: consumer, exit: 137}}\n",
		"before-offset-commit":                     "  - {name: consumer, halt: {at: before-offset-commit}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := labOf(t, top+steps).Check(newFakeBroker("")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A key of the model that this broker does not have is refused.
func TestCheckKeysOfTheBroker(t *testing.T) {
	t.Parallel()
	b := &poorBroker{*newFakeBroker("")}
	for text, want := range map[string]string{
		"summary: s\ndestination: {queue: q, queue-type: quorum}\nsteps: [{name: setup}]\n":        `rabbitmq has no destination key "queue-type"`,
		"summary: s\ndestination: {queue: q}\nconsumer: {heartbeat: 1s}\nsteps: [{name: setup}]\n": `rabbitmq has no consumer key "heartbeat"`,
	} {
		checkMistake(t, text, labOf(t, text).Check(b), want, "")
	}
}

type poorBroker struct{ fakeBroker }

func (*poorBroker) Keys() []string { return []string{"destination.queue"} }

func TestCheckInTheFolderOfAnotherBroker(t *testing.T) {
	t.Parallel()
	l := labOf(t, "summary: s\ndestination: {queue: q}\nsteps: [{name: setup}]\n")
	l.Product = "kafka"
	checkMistake(t, l.File.Text, l.Check(newFakeBroker("")), "lies in the folder of kafka, not of rabbitmq", "")
}

func TestCheckTooManySteps(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("summary: s\ndestination: {queue: q}\nsteps:\n")
	for i := range maxSteps + 1 {
		fmt.Fprintf(&b, "  - {name: look-%d, inspect: broker}\n", i)
	}
	text := b.String()
	checkMistake(t, text, labOf(t, text).Check(newFakeBroker("")), "65 steps are more than the 64", "-")
}

// Every mistake is told at once.
func TestCheckTellsAll(t *testing.T) {
	t.Parallel()
	l := labOf(t, "summary: ''\ndestination: {}\nconsumer: {design: x, key: y}\nsteps: [{name: A, role: b, halt: {at: c, how: d}}]\n")
	if n := len(all(l.Check(newFakeBroker("")))); n < 7 {
		t.Errorf("%d mistakes were told, want at least 7:\n%v", n, l.Check(newFakeBroker("")))
	}
}

func TestShippedLabs(t *testing.T) {
	t.Parallel()
	c := NewCatalogue(os.DirFS("../expected"))
	names, err := c.Names()
	if err != nil || len(names) < 12 {
		t.Fatalf("the labs are %q, %v", names, err)
	}
	for _, name := range names {
		l, err := c.Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := l.Check(newFakeBroker("")); err != nil && l.Product == "rabbitmq" { // cmd/mqlab checks them all, with their drivers
			t.Errorf("%s: %v", name, err)
		}
		if l.Scenario.Lesson == "" {
			t.Errorf("%s has no lesson", name)
		}
	}
}
