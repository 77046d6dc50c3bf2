package assert

import (
	"path/filepath"
	"strings"
	"testing"

	"mqlab/labs"
)

// The recorded runs in testdata: each folder has the report that it must give.
func TestRecordedRuns(t *testing.T) {
	for name, want := range map[string]Outcome{
		"article":             Inconclusive, // no run.json: exits and states are not known
		"article-with-record": Held,
		"consumer-crash":      Held,
		"no-dedupe":           Violated,
		"ack-first":           Violated,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			run := loadRun(t, dir)
			r := Judge(run, expectedOf(t, run))
			if got := r.Outcome(); got != want {
				t.Errorf("outcome %s, want %s", got, want)
			}
			golden(t, filepath.Join(dir, labs.ReportFile), textOf(t, r))
		})
	}
}

// The article's assert.out.txt, letter for letter. It is written here, because
// -update must not be able to change it.
func TestArticle(t *testing.T) {
	const want = `PASS crashExitCode: 137
PASS crashAfterBusinessCommit: 1
PASS receivedTotal: 4
PASS redeliveredCount: 1
PASS duplicatesObserved: 1
PASS uniqueMessageIds: 3
PASS business_rows: 3
PASS queueDepthAfter: 0
PASS consumer-run2.exitCode: 0
RESULT: all assertions passed
`
	run := loadRun(t, "testdata/article-with-record")
	e, err := ReadLab(loadLab(t, "rabbitmq/consumer-crash"), figures())
	if err != nil {
		t.Fatal(err)
	}
	r := Judge(run, e)
	if got := textOf(t, r); got != want {
		t.Errorf("got\n%s", got)
	}
	if r.Broker != "container 4.1.4 rabbitmq:4.1.4-management" || r.Run != "article" || r.Lab != "consumer-crash" {
		t.Errorf("report of %s %s %s", r.Broker, r.Run, r.Lab)
	}
}

func TestArticleWithoutRecord(t *testing.T) {
	run := loadRun(t, "testdata/article")
	r := Judge(run, expectedOf(t, run))
	count := map[Outcome]int{}
	for _, res := range r.Results {
		count[res.Outcome]++
	}
	if count[Held] != 6 || count[Inconclusive] != 3 || len(r.Results) != 9 {
		t.Errorf("%v over %d results", count, len(r.Results))
	}
}

// Every lab of the catalogue has an expected file that can be read, by both
// ways to read it.
func TestCatalogue(t *testing.T) {
	names, err := catalogue().Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range names {
		l := loadLab(t, id)
		known := figures()
		if l.Product != "rabbitmq" {
			continue // the figures here are RabbitMQ's
		}
		if _, err := ReadLab(l, known); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := Read(l.Expected, &l.Scenario, known); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A redelivered order's story is told in the order of time, with its places.
func TestTimeline(t *testing.T) {
	run := loadRun(t, "testdata/no-dedupe")
	r := Judge(run, expectedOf(t, run))
	for _, res := range r.Results {
		if res.Name != "business_rows" {
			continue
		}
		if res.Message != "order-1001" {
			t.Fatalf("guilty is %q", res.Message)
		}
		var story []string
		for _, v := range res.Timeline {
			if !strings.HasPrefix(v.Text, "[replay-gate]") {
				story = append(story, v.Step+" "+strings.Fields(v.Brief)[0])
			}
		}
		want := "producer confirmed; consumer-run1 received; consumer-run1 business_committed; consumer-run1 crash_injected; " +
			"consumer-run2 received; consumer-run2 business_committed; inspect-db row; inspect-db row"
		if got := strings.Join(story, "; "); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if res.Timeline[0].String() != "producer.out.txt:1  01:41:06.009  producer  confirmed aggregateId=order-1001" {
			t.Errorf("first line is %q", res.Timeline[0])
		}
	}
}
