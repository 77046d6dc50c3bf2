package brokers

// Origin says where a broker came from; it stands in every report.
type Origin struct {
	Product  string       `json:"product"`
	Provider string       `json:"provider"` // container, native, embedded or url
	Version  string       `json:"version"`  // the broker's own word
	Image    string       `json:"image,omitempty"`
	Address  Address      `json:"address"`
	Adopted  bool         `json:"adopted,omitempty"` // it ran before this run and goes on after it
	Lacks    []Capability `json:"lacks,omitempty"`   // what this provider cannot do though the product can
}

// Simulated reports whether the broker is mqlab's own stand-in.
func (o Origin) Simulated() bool { return o.Provider == "embedded" }

// String is the origin as a report shows it: "native 3.10.8" or
// "embedded (simulated)".
func (o Origin) String() string {
	s := o.Provider
	if o.Simulated() {
		return s + " (simulated)"
	}
	if o.Version != "" {
		s += " " + o.Version
	}
	if o.Image != "" {
		s += " " + o.Image
	}
	if o.Adopted && o.Provider != "url" {
		s += " (kept running)"
	}
	return s
}

// Control is a broker that runs now, as its provider holds it.
type Control interface {
	Origin() Origin
	// Died is closed when a broker process that the provider started has
	// ended; it is nil where the provider cannot know.
	Died() <-chan struct{}
	// LastWords are the broker's last lines of output, for a report; may be empty.
	LastWords() string
	// Release ends a broker that was started for this run and leaves an
	// adopted one alone. It is idempotent.
	Release() error
}
