package pulsar_test

import (
	"strings"
	"testing"

	"mqlab/brokers"
	"mqlab/brokers/pulsar"
)

func TestCheck(t *testing.T) {
	rows := []struct {
		d    brokers.Destination
		want string // a part of the error; empty means none
	}{
		{brokers.Destination{Topic: "orders"}, ""},
		{brokers.Destination{Topic: "Orders_1.v=2"}, ""},
		{brokers.Destination{}, "missing"},
		{brokers.Destination{Topic: "a/b"}, "'/'"},
		{brokers.Destination{Topic: "a b"}, "' '"},
		{brokers.Destination{Topic: "über"}, "'ü'"},
		{brokers.Destination{Topic: ".."}, "dots"},
		{brokers.Destination{Topic: "orders-partition-0"}, "-partition-"},
		{brokers.Destination{Topic: strings.Repeat("a", 181)}, "longer"},
		{brokers.Destination{Topic: "orders", Group: "a/b"}, "consumer.subscription"},
		{brokers.Destination{Queue: "q"}, "no queues"},
		{brokers.Destination{Topic: "orders", QueueType: "quorum"}, "no queues"},
		{brokers.Destination{Topic: "orders", Partitions: 2}, "without partitions"},
	}
	for _, row := range rows {
		err := pulsar.Driver{}.Check(row.d)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%+v: %v, want %q", row.d, err, row.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"pulsar://127.0.0.1:1?adm1n=x":              `no setting "adm1n"`,
		"pulsar://127.0.0.1:1?admin=127.0.0.1:8080": "admin is not a URL",
		"pulsar://127.0.0.1:1?admin=ftp://h":        "admin is not a URL",
		"pulsar://127.0.0.1:1/public":               "/tenant/namespace",
		"pulsar://127.0.0.1:1/a/b/c":                "/tenant/namespace",
		"pulsar://token@127.0.0.1:1":                "behind a colon",
	} {
		at, err := brokers.ParseAddress(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (pulsar.Driver{}).Probe(t.Context(), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestUnknownSubscriptionType(t *testing.T) {
	at, err := brokers.ParseAddress("pulsar://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pulsar.Driver{}.OpenConsumer(t.Context(), at, brokers.Destination{Topic: "t"}, brokers.ConsumerOptions{Subscription: "private"})
	if err == nil || !strings.Contains(err.Error(), `"private"`) {
		t.Errorf("got %v", err)
	}
}
