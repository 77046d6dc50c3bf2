package embedded

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestNotServed holds the table to what the stand-in says of itself: a request
// that is not in its answer to ApiVersions is one that no client sends.
func TestNotServed(t *testing.T) {
	s, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it never fails
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	res, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	served := map[int16]bool{}
	for _, k := range res.ApiKeys {
		served[k.ApiKey] = true
	}
	var missing []string
	for key := range int16(kmsg.MaxKey + 1) {
		if r := kmsg.RequestForKey(key); r != nil && !served[key] {
			missing = append(missing, kmsg.NameForKey(key))
		}
	}
	if diff := cmp.Diff(NotServed(), missing); diff != "" {
		t.Errorf("the table (-), the stand-in (+):\n%s", diff)
	}
}
