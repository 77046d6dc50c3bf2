package labs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"mqlab/brokers"
	"mqlab/gate"
)

// Scenario is the ordered plan of a lab, as its YAML file says it.
type Scenario struct {
	Summary     string               `json:"summary" jsonschema:"one line: what happens"`
	Lesson      string               `json:"lesson,omitempty" jsonschema:"what a reader should learn from it"`
	Requires    []brokers.Capability `json:"requires,omitempty" jsonschema:"what the broker must be able to do; otherwise the lab is skipped"`
	Timeout     Duration             `json:"timeout,omitempty" jsonschema:"bounds every wait of the run; default 60s"`
	Destination brokers.Destination  `json:"destination" jsonschema:"where the messages go, in the broker's own words"`
	Messages    []string             `json:"messages,omitempty" jsonschema:"fixtures by name"`
	Producer    Producer             `json:"producer,omitempty" jsonschema:"settings of every producer step"`
	Consumer    Consumer             `json:"consumer,omitempty" jsonschema:"settings of every consumer step"`
	Steps       []Step               `json:"steps" jsonschema:"what is started, in order"`
}

// Producer are the settings of a producer.
type Producer struct {
	Messages  []string `json:"messages,omitempty" jsonschema:"fixtures by name, instead of the scenario's"`
	Transient bool     `json:"transient,omitempty" jsonschema:"messages that need not survive a restart of the broker"`
}

// Consumer are the settings of a consumer.
type Consumer struct {
	Design    string   `json:"design,omitempty" jsonschema:"the order of claim, write and acknowledgement"`
	Key       string   `json:"key,omitempty" jsonschema:"what the dedupe marker is about: messageId or aggregateId"`
	Store     string   `json:"store,omitempty" jsonschema:"the database's name; consumers with the same name share it"`
	Name      string   `json:"name,omitempty" jsonschema:"the consumer's name on the broker"`
	Prefetch  int      `json:"prefetch,omitempty" jsonschema:"deliveries handed out before an ack"`
	Heartbeat Duration `json:"heartbeat,omitempty" jsonschema:"the broker's patience with a silent client"`

	Group            string   `json:"group,omitempty" jsonschema:"the consumer group; default: the topic's name and -group"`
	Instance         string   `json:"instance,omitempty" jsonschema:"who the consumer is when it comes back; default: the store's name when no other consumer can run at the same time"`
	Membership       string   `json:"membership,omitempty" jsonschema:"static or dynamic; default: static when no other consumer can run at the same time"`
	Protocol         string   `json:"protocol,omitempty" jsonschema:"the group protocol: classic (default) or consumer (KIP-848)"`
	Session          Duration `json:"session,omitempty" jsonschema:"how long the broker waits for a silent member"`
	Isolation        string   `json:"isolation,omitempty" jsonschema:"read-uncommitted (default) or read-committed"`
	Subscription     string   `json:"subscription,omitempty" jsonschema:"the subscription; default: the topic's name and -group"`
	SubscriptionType string   `json:"subscription-type,omitempty" jsonschema:"exclusive (default), shared, failover or key-shared"`
}

// Step is one process run in a scenario, one look at the broker, or one act on
// it.
type Step struct {
	Name         string     `json:"name" jsonschema:"unique in the scenario"`
	Role         string     `json:"role,omitempty" jsonschema:"the program that the step runs; default: the step's name"`
	Inspect      string     `json:"inspect,omitempty" jsonschema:"broker: record the broker's numbers here"`
	Broker       string     `json:"broker,omitempty" jsonschema:"an act on the broker's process: kill, stop, start, restart, pause, resume; or cut: the connections of one client"`
	Client       string     `json:"client,omitempty" jsonschema:"the step whose connections are cut"`
	Background   bool       `json:"background,omitempty" jsonschema:"the next step does not wait for this one to end"`
	WhileRunning bool       `json:"while-running,omitempty" jsonschema:"an inspecting step that does not wait for the consumers to end"`
	After        *Condition `json:"after,omitempty" jsonschema:"when the step starts; default: when the step before it ended"`
	Until        *Until     `json:"until,omitempty" jsonschema:"when a consumer ends before the destination is drained"`
	Timeout      Duration   `json:"timeout,omitempty" jsonschema:"bounds this step; default: the scenario's"`
	Producer     Producer   `json:"producer,omitempty" jsonschema:"settings for this step alone"`
	Consumer     Consumer   `json:"consumer,omitempty" jsonschema:"settings for this step alone"`
	Store        string     `json:"store,omitempty" jsonschema:"the database that inspect-db reads"`
	Halt         *Halt      `json:"halt,omitempty" jsonschema:"the role ends at a checkpoint"`
	Hold         *Hold      `json:"hold,omitempty" jsonschema:"the role waits at a checkpoint"`
	Freeze       *Hold      `json:"freeze,omitempty" jsonschema:"the role's process is stopped at a checkpoint"`
	Fail         *Fail      `json:"fail,omitempty" jsonschema:"the role's handler returns an error at a checkpoint"`
}

// Where says at which checkpoint and for which message a fault strikes.
type Where struct {
	At      string `json:"at" jsonschema:"the checkpoint"`
	Message string `json:"message,omitempty" jsonschema:"a fixture's name"`
	Arrival int    `json:"arrival,omitempty" jsonschema:"which arrival there in this process, from 1; counted among those of message if both are given"`
}

// Halt ends a role at a checkpoint.
type Halt struct {
	Where `json:",inline"`
	How   string     `json:"how,omitempty" jsonschema:"exit (default): os.Exit(137); kill: SIGKILL; term: SIGTERM, then the role goes on; term-kill: SIGTERM, then SIGKILL without letting it go on"`
	When  *Condition `json:"when,omitempty" jsonschema:"the role waits until this holds, then ends"`
}

// Hold keeps a role, or its whole process, at a checkpoint.
type Hold struct {
	Where `json:",inline"`
	Until *Condition `json:"until,omitempty" jsonschema:"when it is let go; default: never"`
}

// Fail makes a role's handler return an error at a checkpoint.
type Fail struct {
	Where `json:",inline"`
	Times int `json:"times,omitempty" jsonschema:"how often, beginning with the first match; default 1"`
}

// Until ends a consumer by a count.
type Until struct {
	Received int `json:"received" jsonschema:"deliveries handled"`
}

// Condition is something that the runner can see: what a step did, or one of
// the broker's numbers. It never speaks of time.
type Condition struct {
	Step       Names  `json:"step,omitempty" jsonschema:"one step or several, all of which must have done it"`
	Checkpoint string `json:"checkpoint,omitempty" jsonschema:"the step stands or stood at this checkpoint"`
	Status     string `json:"status,omitempty" jsonschema:"the step has logged this word"`
	Exit       string `json:"exit,omitempty" jsonschema:"the step has ended with this code, or any"`
	Message    string `json:"message,omitempty" jsonschema:"a fixture's name"`
	Count      int    `json:"count,omitempty" jsonschema:"how often; default 1"`
	Broker     string `json:"broker,omitempty" jsonschema:"one of the broker's numbers, such as depth"`
	Is         *int64 `json:"is,omitempty" jsonschema:"the value that the broker's number must have"`
}

// Names is one name or a list of them.
type Names []string

// UnmarshalYAML reads a name or a list.
func (n *Names) UnmarshalYAML(decode func(any) error) error {
	var one string
	if decode(&one) == nil {
		*n = Names{one}
		return nil
	}
	var many []string
	if err := decode(&many); err != nil {
		return err
	}
	*n = many
	return nil
}

// Duration is a length of time as Go writes it: 300ms, 2s.
type Duration time.Duration

// maxDuration is more than any lab needs.
const maxDuration = 24 * time.Hour

// UnmarshalYAML reads a duration with its unit.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	text := strings.Trim(n.GetToken().Value, `"'`)
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 || v > maxDuration {
		return misplaced{n.GetToken(), fmt.Sprintf("%q is not a duration such as 300ms or 2s, above zero and up to 24h", text)}
	}
	*d = Duration(v)
	return nil
}

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalJSON writes the duration with its unit.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// The roles that a step can run.
const (
	RoleSetup     = "setup"
	RoleProducer  = "producer"
	RoleConsumer  = "consumer"
	RoleInspectDB = "inspect-db"
)

// Roles lists the programs that a step can run.
func Roles() []string { return []string{RoleSetup, RoleProducer, RoleConsumer, RoleInspectDB} }

// The words of consumer.membership and of consumer.protocol.
const (
	Static           = "static"
	Dynamic          = "dynamic"
	ProtocolClassic  = "classic"
	ProtocolConsumer = "consumer"
)

// The ways in which a halt ends a role.
const (
	HowExit     = "exit"
	HowKill     = "kill"
	HowTerm     = "term"
	HowTermKill = "term-kill"
)

// DefaultTimeout bounds a run whose files name no timeout.
const DefaultTimeout = 60 * time.Second

// DefaultStore is the name of the database of a scenario that names none.
const DefaultStore = "orders"

// RoleName is the program the step runs; empty for a look at the broker and for
// an act on it.
func (s Step) RoleName() string {
	if s.Inspect != "" || s.Broker != "" {
		return ""
	}
	if s.Role != "" {
		return s.Role
	}
	return s.Name
}

// Inspects reports whether the step looks at what the consumers left behind.
func (s Step) Inspects() bool { return s.Inspect != "" || s.RoleName() == RoleInspectDB }

// Cut is the act that breaks the connections of one client; the others are
// those of brokers.Acts.
const Cut = "cut"

// OwnBroker reports whether the scenario does something to the broker's
// process, which must then be the run's own.
func (sc *Scenario) OwnBroker() bool {
	return slices.ContainsFunc(sc.Steps, func(s Step) bool { return s.Broker != "" && s.Broker != Cut })
}

// needs is what the broker must be able to do: what the scenario says, and what
// its acts take for granted.
func (sc *Scenario) needs() []brokers.Capability {
	if slices.ContainsFunc(sc.Steps, func(s Step) bool { return s.Broker == string(brokers.Disconnect) }) {
		return append(slices.Clone(sc.Requires), brokers.Network)
	}
	return sc.Requires
}

// ConsumerOf is the scenario's consumer with the step's own settings over it.
func (sc *Scenario) ConsumerOf(s Step) Consumer {
	c := sc.Consumer
	over(&c.Design, s.Consumer.Design)
	over(&c.Key, s.Consumer.Key)
	over(&c.Store, s.Consumer.Store)
	over(&c.Name, s.Consumer.Name)
	over(&c.Prefetch, s.Consumer.Prefetch)
	over(&c.Heartbeat, s.Consumer.Heartbeat)
	over(&c.Instance, s.Consumer.Instance)
	over(&c.Membership, s.Consumer.Membership)
	over(&c.Protocol, s.Consumer.Protocol)
	over(&c.Session, s.Consumer.Session)
	over(&c.Isolation, s.Consumer.Isolation)
	over(&c.SubscriptionType, s.Consumer.SubscriptionType)
	def(&c.Design, "transactional-dedupe")
	def(&c.Key, "messageId")
	def(&c.Store, DefaultStore)
	def(&c.Name, "consumer-1")
	def(&c.Prefetch, 1)
	return c
}

// DestinationOf is the destination with who reads it, in names of one run.
func (sc *Scenario) DestinationOf(run string) brokers.Destination {
	d := sc.Destination
	d.Group, d.Suffix = cmp.Or(sc.Consumer.Group, sc.Consumer.Subscription), run
	return d
}

// InstanceOf is who a consumer step is to the broker, so that one that comes
// back after a crash takes its own place; empty for a consumer that is somebody
// new each time.
func (sc *Scenario) InstanceOf(s Step) string {
	c := sc.ConsumerOf(s)
	switch {
	case c.Instance != "":
		return c.Instance
	case c.Membership == Static:
		return c.Store
	case c.Membership == Dynamic, c.Protocol == ProtocolConsumer, !sc.alone(s): // in KIP-848 a crashed static member blocks its own return
		return ""
	}
	return c.Store
}

// alone reports whether no other consumer can run at the same time as a step's.
func (sc *Scenario) alone(s Step) bool {
	i := sc.index(s.Name)
	for j, o := range sc.Steps {
		if j != i && o.RoleName() == RoleConsumer && !sc.startsAfterEnd(j, i) && !sc.startsAfterEnd(i, j) {
			return false
		}
	}
	return true
}

// ProducerOf is the scenario's producer with the step's own settings over it.
func (sc *Scenario) ProducerOf(s Step) Producer {
	p := sc.Producer
	if len(p.Messages) == 0 {
		p.Messages = sc.Messages
	}
	if len(s.Producer.Messages) > 0 {
		p.Messages = s.Producer.Messages
	}
	p.Transient = p.Transient || s.Producer.Transient
	return p
}

// StoreOf is the database that an inspect-db step reads.
func (sc *Scenario) StoreOf(s Step) string {
	if s.Store != "" {
		return s.Store
	}
	return sc.ConsumerOf(Step{}).Store
}

// Step returns the step of that name.
func (sc *Scenario) Step(name string) (Step, bool) {
	for _, s := range sc.Steps {
		if s.Name == name {
			return s, true
		}
	}
	return Step{}, false
}

// Stops are the checkpoints at which a step has to wait: the article's two for
// a consumer, and what the scenario names.
func (sc *Scenario) Stops(s Step) []gate.Checkpoint {
	var stops []gate.Checkpoint
	add := func(name string) {
		if cp, err := gate.ParseCheckpoint(name); err == nil && !slices.Contains(stops, cp) {
			stops = append(stops, cp)
		}
	}
	if s.RoleName() == RoleConsumer {
		add(string(gate.AfterDelivery))
		add(string(gate.BeforeAck))
	}
	for _, f := range s.Faults() {
		add(f.At)
	}
	for _, o := range sc.Steps {
		for _, c := range o.conditions() {
			if slices.Contains(c.Step, s.Name) && c.Checkpoint != "" {
				add(c.Checkpoint)
			}
		}
	}
	return stops
}

func over[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

func def[T comparable](to *T, from T) {
	var zero T
	if *to == zero {
		*to = from
	}
}
