package assert

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"mqlab/labs"
)

// crashScenario is consumer-crash with a look at the broker in the middle.
func crashScenario(t testing.TB) *labs.Scenario {
	t.Helper()
	sc := loadLab(t, "rabbitmq/consumer-crash").Scenario
	sc.Steps = append(sc.Steps, labs.Step{Name: "look", Inspect: "broker"})
	return &sc
}

func readText(t testing.TB, text string) (*Expected, error) {
	t.Helper()
	return Read(labs.File{Path: "x.yaml", Text: text}, crashScenario(t), figures())
}

func TestRead(t *testing.T) {
	e, err := readText(t, `
b: {count: {status: received, redelivered: true, attempt: 1}, in: [consumer-run2], want: 1, why: because}
a: {state: depth, at: {step: consumer-run1, checkpoint: before-offset-commit, message: order-1001}, of: orders.crash, want: {min: 1, max: 0x10}}
"received:orders.eu": {duration: {from: {step: producer, status: confirmed}, to: {step: consumer-run1, status: received, message: order-1002}}, want: {max: 1_000}}
c: {account: keys, want: {doubled: [order-1002, order-1001]}}
d: {sequence: attempt, in: [consumer-run1], want: [1, "2", true]}
`)
	if err != nil {
		t.Fatal(err)
	}
	n := func(i int64) *int64 { return &i }
	want := []Assertion{
		{Name: "b", Measure: "count", Count: Pairs{"status": "received", "redelivered": "true", "attempt": "1"}, In: []string{"consumer-run2"}, Want: Want{Value: int64(1)}, Why: "because"},
		{Name: "a", Measure: "state", State: "depth", At: &At{"consumer-run1", "before-ack", "order-1001"}, Of: "orders.crash", Want: Want{Min: n(1), Max: n(16)}},
		{Name: "received:orders.eu", Measure: "duration", Duration: &Span{Moment{"producer", "confirmed", ""}, Moment{"consumer-run1", "received", "order-1002"}}, Want: Want{Max: n(1000)}},
		{Name: "c", Measure: "account", Account: "keys", Want: Want{Value: Balance{Doubled: []string{"order-1001", "order-1002"}}}},
		{Name: "d", Measure: "sequence", Sequence: "attempt", In: []string{"consumer-run1"}, Want: Want{Value: []string{"1", "2", "true"}}},
	}
	if diff := cmp.Diff(want, e.Assertions); diff != "" {
		t.Error(diff)
	}
}

// A fixture's name may differ from its business key.
func TestFixtureKeys(t *testing.T) {
	sc := crashScenario(t)
	sc.Messages = append(sc.Messages, "poison-message")
	e, err := Read(labs.File{Path: "x.yaml", Text: "a: {account: keys, want: {lost: [poison-message, order-1001]}}"}, sc, figures())
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Assertions[0].Want.String(); got != "lost order-1001,order-poison" {
		t.Errorf("got %q", got)
	}
}

// refusals are files that both the decoder and the schema must refuse, unless
// only the decoder can know (scenario, figures).
func refusals() []struct{ text, says, only string } {
	return []struct{ text, says, only string }{
		{"", "x.yaml:1:1: the file is empty", "decoder"},
		{"# only a comment\n", "the file is empty", "decoder"},
		{"{}", "an expected file is a mapping", ""},
		{"[a]", "x.yaml:1:1", ""},
		{"a: 1\n---\nb: 2", "a second document", "decoder"},
		{"a: &x {exit: producer, want: 0}", "anchors and aliases", "decoder"},
		{"a: {exit: producer, want: 0}\na: {exit: producer, want: 0}", "x.yaml:2:1: ", "decoder"},
		{"a: {exit: producer, want: 0", "x.yaml:1:", "decoder"},
		{"a: null", "an assertion is a mapping", ""},
		{"a: !!map {exit: producer, want: 0}", "tags are not part of the lab language", "decoder"},
		{"a b: {exit: producer, want: 0}", `not "a b"`, ""},
		{"a: {want: 0}", "a has no measure; there is exit, count", ""},
		{"a: {cuont: {status: produced}, in: [producer], want: 0}", `unknown key "cuont"; did you mean "count"?`, ""},
		{"a: {exit: producer, count: {status: produced}, in: [producer], want: 0}", "two measures, exit and count", ""},
		{"a: {exit: producer}", "a: exit needs `want`", ""},
		{"a: {exit: producer, want: 0, in: [producer]}", "x.yaml:1:30: exit does not take `in`; it takes want, why", ""},
		{"a: {exit: producer, want: 0, wyh: x}", `unknown key "wyh"; did you mean "why"`, ""},
		{"a: {exit: producr, want: 0}", `x.yaml:1:11: no step of this lab is named "producr"; did you mean "producer"?`, "decoder"},
		{"a: {exit: look, want: 0}", "looks at the broker", "decoder"},
		{"a: {exit: [producer], want: 0}", "expected a text, not a list", ""},
		{"a: {exit: '', want: 0}", "expected a text, not an empty one", ""},
		{"a: {exit: producer, want: 256}", "want is an exit code from 0 to 255 here, not 256", ""},
		{"a: {exit: producer, want: {max: 255}}", "a bound of 255 says nothing", ""},
		{"a: {exit: producer, want: '0'}", "want is an exit code from 0 to 255 here, not a text", ""},
		{"a: {exit: producer, want: none}", "here, not a text", ""},
		{"a: {exit: producer, want: }", "here, not nothing", ""},
		{"a: {exit: producer, want: [0]}", "here, not a list", ""},
		{"a: {exit: producer, want: 0.5}", "here, not 0.5", ""},
		{"a: {exit: producer, want: {}}", "want is empty", ""},
		{"a: {exit: producer, want: {mni: 1}}", `unknown key "mni"; did you mean "min" or "max"?`, ""},
		{"a: {exit: producer, want: {min: 1, not: 3}}", "either not, or min and max", ""},
		{"a: {exit: producer, want: {min: 5, max: 3}}", "nothing is at least 5 and at most 3", "decoder"},
		{"a: {exit: producer, want: 0, why: 3}", "expected a text, not a number", ""},
		{"a: {count: {}, in: [producer], want: 0}", "expected pairs such as {status: received}", ""},
		{"a: {count: received, in: [producer], want: 0}", "expected pairs such as {status: received}", ""},
		{"a: {count: {status: recieved}, in: [producer], want: 0}", `x.yaml:1:21: no status word is named "recieved"; did you mean "received"?`, ""},
		{"a: {count: {statsu: received}, in: [producer], want: 0}", `no key of a log line is named "statsu"; did you mean "state" or "status"?`, ""},
		{"a: {count: {redelivered: yes}, in: [producer], want: 0}", `no value of redelivered is named "yes"`, ""},
		{"a: {count: {attempt: }, in: [producer], want: 0}", "expected a text, a number, or true or false, not nothing", ""},
		{"a: {count: {attempt: [1]}, in: [producer], want: 0}", "not a list", ""},
		{"a: {count: {aggregateId: order-101}, in: [producer], want: 0}", `no business key of this lab's messages is named "order-101"; did you mean "order-1001"`, "decoder"},
		{"a: {count: {checkpoint: after-commit}, in: [consumer-run1], want: 0}", `no checkpoint at which a step of this lab stops is named "after-commit"`, "decoder"},
		{"a: {count: {status: received}, want: 0}", "a: count needs `in`", ""},
		{"a: {count: {status: received}, in: [], want: 0}", "the list of steps is empty", ""},
		{"a: {count: {status: received}, in: producer, want: 0}", "expected a list of steps, not a text", ""},
		{"a: {count: {status: produced}, in: [producer, producer], want: 0}", `x.yaml:1:47: "producer" stands in the list twice`, ""},
		{"a: {count: {status: received}, in: [look], want: 0}", "looks at the broker", "decoder"},
		{"a: {count: {status: produced}, in: [producer], want: -1}", "want is a number from 0 here, not -1", ""},
		{"a: {count: {status: produced}, in: [producer], want: {min: 0}}", "a bound of 0 says nothing about a number from 0", ""},
		{"a: {count: {status: produced}, in: [producer], want: {max: -1}}", "a bound of -1 says nothing", ""},
		{"a: {count: {status: produced}, in: [producer], from: consumer-run1, want: 0}", "it sends nothing", "decoder"},
		{"a: {count: {status: produced}, in: [producer], where: {attempt: 1}, want: 0}", "count does not take `where`", ""},
		{"a: {count: {status: row}, in: [consumer-run1], want: 0}", "only inspect-db writes status=row", "decoder"},
		{"a: {distinct: mesageId, in: [producer], want: 0}", `did you mean "messageId"?`, ""},
		{"a: {distinct: messageId, per: consumr, in: [producer], want: 0}", `did you mean "consumer"?`, ""},
		{"a: {repeats: aggregateId, in: [producer], want: 0}", "there is messageId", ""},
		{"a: {last: business_rows, in: [consumer-run2], want: 3}", `x.yaml:1:31: only inspect-db writes business_rows, and "consumer-run2" is a consumer`, "decoder"},
		{"a: {last: business_rows, in: [inspect-db], want: [3]}", "want is a text, a number, or true or false here, not a list", ""},
		{"a: {last: business_rows, in: [inspect-db], want: ''}", "not an empty one", ""},
		{"a: {sequence: attempt, in: [producer], want: 1,2}", "want is a list here, not", ""},
		{"a: {sequence: attempt, in: [producer], want: {min: 1}}", `unknown key "min"`, ""},
		{"a: {state: deph, at: end, want: 0}", `no figure of this broker is named "deph"; did you mean "depth"?`, "decoder"},
		{"a: {state: depth, want: 0}", "state needs `at`", ""},
		{"a: {state: depth, at: start, want: 0}", "expected end, or a mapping", ""},
		{"a: {state: depth, at: {checkpoint: before-ack}, want: 0}", "`step` is missing", ""},
		{"a: {state: depth, at: {step: consumer-run1, chekpoint: x}, want: 0}", `did you mean "checkpoint"?`, ""},
		{"a: {state: depth, at: {step: consumer-run1, checkpoint: befor-ack}, want: 0}", `"consumer-run1" does not stop at "befor-ack"; did you mean "before-ack"?`, "decoder"},
		{"a: {state: depth, at: {step: consumer-run1, checkpoint: after-ack}, want: 0}", `"consumer-run1" does not stop at "after-ack"`, "decoder"},
		{"a: {state: depth, at: {step: consumer-run1}, want: 0}", "the broker is not asked at", "decoder"},
		{"a: {state: depth, at: {step: look, message: order-1001}, want: 0}", "a message needs a checkpoint", ""},
		{"a: {state: depth, at: {step: consumer-run1, checkpoint: before-ack, message: order-9}, want: 0}", `no message of this lab is named "order-9"`, "decoder"},
		{"a: {state: depth, at: end, of: orders, want: 0}", `no destination of this lab is named "orders"`, "decoder"},
		{"a: {state: depth, at: end, want: nil}", "want is a whole number or none here", ""},
		{"a: {rows: {table: orders}, in: [producer], want: 0}", "only inspect-db writes status=row", "decoder"},
		{"a: {rows: {status: row}, in: [inspect-db], want: 0}", "leave status out", ""},
		{"a: {duration: {from: {step: producer, status: confirmed}}, want: 0}", "`to` is missing", ""},
		{"a: {duration: {from: {step: producer}, to: {step: producer, status: done}}, want: 0}", "`status` is missing", ""},
		{"a: {duration: {from: {step: producer, status: sent}, to: {step: producer, status: done}}, want: 0}", `no status word is named "sent"`, ""},
		{"a: {last: business_rows, in: [inspect-db], want: {min: 0}}", "x.yaml:1:56: a bound of 0 says nothing about business_rows, a number from 0", "decoder"},
		{"a: {want: {min: -1}, first: attempt, in: [consumer-run1]}", "a bound of -1 says nothing about attempt", "decoder"},
		{"a: {last: received, in: [consumer-run1], want: {not: x}}", "want is received, a number from 0 here, not x", "decoder"},
		{"a: {last: received, in: [consumer-run1], want: {not: -1}}", "want is received, a number from 0 here, not -1", "decoder"},
		{"a: {last: received, in: [consumer-run1], want: {not: 3.0}}", "want is received, a number from 0 here, not 3.0", "decoder"},
		{"a: {last: amountCents, in: [inspect-db], want: {max: 9007199254740992}}", "a bound of 9007199254740992 says nothing about amountCents", ""},
		{"a: {last: redelivered, in: [consumer-run1], want: {not: 5}}", `no value of redelivered is named "5"`, "decoder"},
		{"a: {last: status, in: [consumer-run1], want: {not: dnoe}}", `no status word is named "dnoe"; did you mean "done"?`, "decoder"},
		{"a: {state: depth, at: end, want: {min: 0}}", "a bound of 0 says nothing about a whole number or none", ""},
		{"a: {state: depth, at: end, want: {not: -1}}", "not -1 says nothing about a whole number or none", ""},
		{"a: {state: depth, at: end, want: {not: x}}", "want is a whole number or none here, not a text", ""},
		{"a: {count: {status: received}, in: [consumer-run1], want: {max: 9007199254740992}}", "a bound of 9007199254740992 says nothing about a number from 0", ""},
		{"a: {rows: {table: orders}, in: [inspect-db], want: {min: -1}}", "a bound of -1 says nothing about a number from 0", ""},
		{"a: {distinct: messageId, in: [consumer-run1], want: {not: -1}}", "want is a number from 0 here, not -1", ""},
		{"a: {repeats: messageId, in: [consumer-run1], want: {not: x}}", "want is a number from 0 here, not a text", ""},
		{"a: {sequence: attempt, in: [consumer-run1], want: {not: 1}}", "want is a list here, not", ""},
		{"a: {count: {status: confirmed}, in: [consumer-run1, consumer-run2], want: 0}", "x.yaml:1:21: consumer never logs confirmed; that is a word of producer", "decoder"},
		{"a: {in: [setup, consumer-run1], count: {status: produced}, want: 0}", "setup and consumer never log produced", "decoder"},
		{"a: {distinct: messageId, where: {status: received}, in: [producer], want: 0}", "producer never logs received", "decoder"},
		{"a: {duration: {from: {step: consumer-run1, status: received}, to: {step: consumer-run2, status: prepared}}, want: 0}", "consumer never logs prepared; that is a word of setup", "decoder"},
		{"a: {duration: {from: {step: producer, status: row}, to: {step: producer, status: done}}, want: 0}", "producer never logs row", "decoder"},
		{"a: {account: messages, want: even}", "there is keys", ""},
		{"a: {account: keys, want: 0}", "want is even, or a mapping with lost, doubled, phantom here", ""},
		{"a: {account: keys, want: {lost: []}}", "the list of messages is empty", ""},
		{"a: {account: keys, want: {gone: [order-1001]}}", `unknown key "gone"`, ""},
		{"a: {account: keys, want: {lost: [order-9]}}", `no message of this lab is named "order-9"`, "decoder"},
		{"a: {account: keys, want: {lost: [order-1001, order-1001]}}", "stands in the list twice", ""},
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals() {
		_, err := readText(t, c.text)
		if err == nil {
			t.Errorf("accepted: %s", c.text)
			continue
		}
		var at *labs.FileError
		if !errors.As(err, &at) || at.File != "x.yaml" {
			t.Errorf("%s: not a FileError: %v", c.text, err)
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\n gives %v\n want %q", c.text, err, c.says)
		}
	}
}

// All mistakes of a file come at once, each with its place and the line.
func TestAllMistakes(t *testing.T) {
	_, err := readText(t, `a: {exit: producr, want: 0}
b: {count: {status: recieved, redelivered: maybe}, in: [consumer-run3], wnat: 1}
c: {state: depth, at: {step: consumer-run1, checkpoint: nowhere}, want: [1]}
`)
	golden(t, "testdata/reports/mistakes.txt", fmt.Sprintln(err))
}

// However wrong a file is, what is told of it stays readable.
func TestManyMistakes(t *testing.T) {
	var b strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&b, "a%d: {exit: nobody, want: 0}\n", i)
	}
	_, err := readText(t, b.String())
	if n := strings.Count(err.Error(), "nobody"); n < maxErrors || n > 3*maxErrors {
		t.Errorf("%d mistakes told", n)
	}
}

// The schema refuses what the decoder refuses, except what only a scenario and
// a driver can know, and accepts what the decoder accepts.
func TestSchema(t *testing.T) {
	b, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return resolved.Validate(plain(v))
	}
	for _, c := range refusals() {
		if err := valid0(c.only, valid, c.text); err == nil && c.only == "" {
			t.Errorf("the schema accepts %s", c.text)
		}
	}
	for _, text := range acceptable(t) {
		if _, err := readText(t, text); err != nil {
			t.Errorf("the decoder refuses %s: %v", text, err)
		}
		if err := valid(text); err != nil {
			t.Errorf("the schema refuses %s: %v", text, err)
		}
	}
}

// valid0 leaves out the files that are no single document of YAML at all.
func valid0(only string, valid func(string) error, text string) error {
	if only != "" {
		return nil
	}
	return valid(text)
}

// plain turns what the YAML library made into what JSON would have made.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	}
	return v
}

func acceptable(t testing.TB) []string {
	t.Helper()
	texts := []string{
		loadLab(t, "rabbitmq/consumer-crash").Expected.Text,
		"a: {exit: producer, want: {not: 0}}",
		"a: {exit: producer, want: {min: 1, max: 254}}",
		"a: {count: {status: produced}, in: [producer], want: {max: 0}}",
		"a: {count: {redelivered: 'true'}, in: [producer], want: 1.0}",
		"a: {count: {attempt: 1.5}, in: [producer], from: producer, want: {min: 1}}",
		"a: {distinct: consumer, per: aggregateId, where: {status: received}, in: [consumer-run1], want: 1, why: sticky}",
		"a: {repeats: messageId, in: [consumer-run1], want: 0}",
		"a: {first: redelivered, where: {status: received}, in: [consumer-run1], want: false}",
		"a: {last: received, in: [consumer-run1], want: {min: -3, max: 4}}",
		"a: {last: received, in: [consumer-run1], want: {not: '3'}}",
		"a: {last: consumer, in: [consumer-run1], want: {not: x}}",
		"a: {state: depth, at: end, want: {min: 0, max: 9007199254740993}}",
		"a: {duration: {from: {step: producer, status: confirmed}, to: {step: consumer-run1, status: received}}, want: {min: 0}}",
		"a: {duration: {from: {step: producer, status: confirmed}, to: {step: consumer-run1, status: received}}, want: {not: -1}}",
		"a: {count: {status: confirmed}, in: [consumer-run1, producer], want: 3}",
		"a: {count: {status: failed}, in: [setup, inspect-db], want: 0}",
		"a: {sequence: attempt, in: [consumer-run1], want: []}",
		"a: {sequence: attempt, in: [consumer-run1], want: {not: [1, x, true]}}",
		"a: {state: depth, at: {step: look}, want: none}",
		"a: {state: depth, at: {step: consumer-run1, checkpoint: after-delivery, message: order-1001}, want: {not: none}}",
		"a: {state: depth, at: end, of: orders.crash, want: -1}",
		"a: {rows: {table: orders, amountCents: 19900}, in: [inspect-db], want: 1}",
		"a: {duration: {from: {step: producer, status: confirmed}, to: {step: consumer-run1, status: received}}, want: {max: 5000}}",
		"a: {account: keys, want: even}",
		"a: {account: keys, want: {lost: [order-1001], doubled: [order-1002], phantom: [order-77]}}",
	}
	return texts
}
