package labs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mqlab/brokers"
	"mqlab/gate"
)

// maxSteps bounds a scenario; ours have five to eight steps.
const maxSteps = 64

// maxName bounds a name that becomes a file's, in bytes.
const maxName = 64

// maxSession is Kafka's group.max.session.timeout.ms by default, shortened to
// what a lab can wait for.
const maxSession = 5 * time.Minute

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check reads a lab's scenario against its broker: words that nobody knows,
// faults that cannot strike, waits that cannot end. It returns every mistake,
// each with its place, joined.
func (l *Lab) Check(d brokers.Driver) error {
	c := &checker{lab: l, driver: d, sc: &l.Scenario}
	c.scenario()
	names := map[string]bool{}
	for i, s := range c.sc.Steps {
		at := fmt.Sprintf("$.steps[%d]", i)
		if names[s.Name] {
			c.fail(at+".name", "a second step is named %q", s.Name)
		}
		names[s.Name] = true
		c.step(at, i, s)
	}
	return errors.Join(c.errs...)
}

type checker struct {
	lab    *Lab
	driver brokers.Driver
	sc     *Scenario
	errs   []error
}

func (c *checker) fail(path, format string, a ...any) {
	c.errs = append(c.errs, c.lab.File.ErrorAt(path, fmt.Sprintf(format, a...)))
}

// oneOf refuses a word that is not in the list; an empty one is fine.
func (c *checker) oneOf(path, what, word string, known []string) {
	if word != "" && !slices.Contains(known, word) {
		c.fail(path, "no %s is named %q%s", what, word, Nearest(word, known))
	}
}

func (c *checker) scenario() {
	if strings.TrimSpace(c.sc.Summary) == "" {
		c.fail("$.summary", "summary is missing: one line that says what happens")
	}
	if c.lab.Product != c.driver.Name() {
		c.fail("$", "the lab lies in the folder of %s, not of %s", c.lab.Product, c.driver.Name())
	}
	if err := c.driver.Check(c.sc.Destination); err != nil {
		c.fail("$.destination", "%v", err)
	}
	for key := range presentKeys(c.sc.Destination) {
		if !slices.Contains(c.driver.Keys(), "destination."+key) {
			c.fail("$.destination."+key, "%s has no destination key %q%s", c.driver.Name(), key, Nearest(key, under("destination.", c.driver.Keys())))
		}
	}
	for i, r := range c.sc.Requires {
		var known []string
		for _, k := range brokers.Capabilities() {
			known = append(known, string(k))
		}
		c.oneOf(fmt.Sprintf("$.requires[%d]", i), "capability", string(r), known)
	}
	if len(c.sc.Steps) == 0 {
		c.fail("$.steps", "a scenario needs at least one step")
	}
	if len(c.sc.Steps) > maxSteps {
		c.fail("$.steps", "%d steps are more than the %d that a scenario may have", len(c.sc.Steps), maxSteps)
	}
	c.consumer("$.consumer", c.sc.Consumer)
}

func (c *checker) step(at string, i int, s Step) {
	switch {
	case !kebab.MatchString(s.Name):
		c.fail(at+".name", "a step's name is in kebab-case, such as consumer-run1; not %q", s.Name)
	case len(s.Name) > maxName:
		c.fail(at+".name", "a step's name is not longer than %d characters", maxName)
	case s.Name+outSuffix == ReportFile:
		c.fail(at+".name", "a step cannot be named %q: %s is the report", s.Name, ReportFile)
	}
	switch {
	case s.Inspect != "" && s.Role != "", s.Broker != "" && s.Role != "", s.Inspect != "" && s.Broker != "":
		c.fail(at, "a step has one of role, inspect and broker")
	case s.Broker != "":
		c.act(at, i, s)
	case s.Inspect != "" && s.Inspect != "broker":
		c.fail(at+".inspect", "only broker can be inspected, not %q", s.Inspect)
	case s.Role != "":
		c.oneOf(at+".role", "role", s.Role, Roles())
	case s.RoleName() != "" && !slices.Contains(Roles(), s.Name):
		c.fail(at+".name", "no role is named %q%s (a step with another name says its role)", s.Name, Nearest(s.Name, Roles()))
	}
	c.settings(at, s)
	if is := c.sc.brokerBefore(i); is != isUp && s.After == nil && !s.Background && s.Broker == "" && s.RoleName() != RoleInspectDB {
		c.fail(at, "the broker %s then, so this step cannot end", is)
	}
	for _, f := range s.Faults() {
		c.fault(at+"."+f.Kind, i, s, f)
	}
	if s.After != nil {
		c.condition(at+".after", s.After)
		for _, name := range s.After.Step {
			if j := c.sc.index(name); j >= i {
				c.fail(at+".after.step", "the step would wait for %s", selfOrLater(name, s.Name))
			}
		}
	}
}

// act checks a step that does something to the broker: in the order of the
// file, a broker that is down can only be started, and one that is up cannot.
func (c *checker) act(at string, i int, s Step) {
	known := []string{Cut}
	for _, a := range brokers.Acts() {
		known = append(known, string(a))
	}
	c.oneOf(at+".broker", "act on a broker", s.Broker, known)
	if s.Background {
		c.fail(at+".background", "an act on the broker is over when the next step begins")
	}
	if s.Broker == Cut {
		j := c.sc.index(s.Client)
		if j >= 0 && j < i && c.sc.startsAfterEnd(i, j) {
			c.fail(at+".client", "%q has ended by then", s.Client)
		}
		if j < 0 || j >= i || c.sc.Steps[j].RoleName() != RoleConsumer && c.sc.Steps[j].RoleName() != RoleProducer {
			c.fail(at+".client", "client names an earlier producer or consumer, not %q", s.Client)
		}
		return
	}
	if s.Client != "" {
		c.fail(at+".client", "only cut is about one client")
	}
	is := c.sc.brokerBefore(i)
	ok := map[brokers.Act]bool{brokers.Start: is == isDown, brokers.Resume: is == isPaused, brokers.Pause: is == isUp,
		brokers.Kill: is == isUp || is == isPaused, brokers.Stop: is == isUp || is == isPaused, brokers.Restart: is == isUp || is == isPaused,
		brokers.Disconnect: is == isUp, brokers.Connect: is == isApart}
	if may, known := ok[brokers.Act(s.Broker)]; known && !may {
		c.fail(at+".broker", "%s: the broker %s then", s.Broker, is)
	}
	switch end := c.sc.brokerBefore(len(c.sc.Steps)); {
	case s.Broker == string(brokers.Pause) && end == isPaused:
		c.fail(at+".broker", "pause: the broker is never resumed, so that nothing can be asked of it")
	case s.Broker == string(brokers.Disconnect) && end == isApart:
		c.fail(at+".broker", "disconnect: the broker is never connected again, so that nothing can be asked of it")
	}
}

// What a broker is, in the order of the file.
const (
	isUp     = "runs"
	isDown   = "is down"
	isPaused = "is paused"
	isApart  = "is off the network"
)

// brokerBefore is what the acts before a step have made of the broker.
func (sc *Scenario) brokerBefore(i int) string {
	is := isUp
	for _, s := range sc.Steps[:i] {
		switch brokers.Act(s.Broker) {
		case brokers.Kill, brokers.Stop:
			is = isDown
		case brokers.Pause:
			is = isPaused
		case brokers.Disconnect:
			is = isApart
		case brokers.Start, brokers.Restart, brokers.Resume, brokers.Connect:
			is = isUp
		}
	}
	return is
}

func selfOrLater(name, self string) string {
	if name == self {
		return "itself"
	}
	return fmt.Sprintf("%q, which comes later in the file", name)
}

// settings refuses what a step of another role would silently ignore.
func (c *checker) settings(at string, s Step) {
	role := s.RoleName()
	c.consumer(at+".consumer", s.Consumer)
	if s.Consumer.Group != "" || s.Consumer.Subscription != "" {
		c.fail(at+".consumer", "the consumers of a scenario read as one group: name it in the scenario's consumer")
	}
	if role == RoleConsumer {
		c.membership(at, s)
	}
	if role != RoleConsumer {
		if s.Consumer != (Consumer{}) {
			c.fail(at+".consumer", "settings of a consumer in a step that is none")
		}
		if s.Until != nil {
			c.fail(at+".until", "only a consumer ends by a count")
		}
	}
	if role != RoleProducer && (len(s.Producer.Messages) > 0 || s.Producer.Transient) {
		c.fail(at+".producer", "settings of a producer in a step that is none")
	}
	if role == RoleProducer && len(c.sc.ProducerOf(s).Messages) == 0 {
		c.fail(at, "the producer has no messages: name fixtures in messages")
	}
	if s.Until != nil && s.Until.Received < 1 {
		c.fail(at+".until.received", "until.received is at least 1")
	}
	if s.WhileRunning && !s.Inspects() {
		c.fail(at+".while-running", "only a step that inspects can look while consumers run")
	}
	if s.Client != "" && s.Broker == "" {
		c.fail(at+".client", "client belongs to an act on the broker")
	}
	if s.Store != "" && role != RoleInspectDB {
		c.fail(at+".store", "only inspect-db reads a store; a consumer's is consumer.store")
	}
	if role == RoleInspectDB && !c.hasStore(c.sc.StoreOf(s)) {
		c.fail(at, "no consumer has the store %q", c.sc.StoreOf(s))
	}
}

// membership refuses two consumers that would be one to the broker at the same
// time, and settings that contradict each other.
func (c *checker) membership(at string, s Step) {
	o := c.sc.ConsumerOf(s)
	if o.Membership == Dynamic && o.Instance != "" {
		c.fail(at, "a dynamic member has no instance")
	}
	if o.Protocol == ProtocolConsumer && o.Session > 0 {
		c.fail(at, "in the group protocol consumer the broker alone decides about the session")
	}
	if name := c.sc.InstanceOf(s); name != "" {
		i := c.sc.index(s.Name)
		for j, p := range c.sc.Steps {
			if j > i && p.RoleName() == RoleConsumer && c.sc.InstanceOf(p) == name && !c.sc.startsAfterEnd(j, i) && !c.sc.startsAfterEnd(i, j) {
				c.fail(at, "%q can run at the same time and is the same instance %q to the broker", p.Name, name)
			}
		}
	}
}

func (c *checker) hasStore(name string) bool {
	return slices.ContainsFunc(c.sc.Steps, func(s Step) bool {
		return s.RoleName() == RoleConsumer && c.sc.ConsumerOf(s).Store == name
	})
}

func (c *checker) consumer(at string, o Consumer) {
	c.oneOf(at+".design", "design", o.Design, DesignNames())
	c.oneOf(at+".key", "dedupe key", o.Key, []string{"messageId", "aggregateId"})
	for _, named := range [][2]string{{"store", o.Store}, {"name", o.Name}, {"group", o.Group}, {"instance", o.Instance}, {"subscription", o.Subscription}} {
		field, name := named[0], named[1]
		if name != "" && !kebab.MatchString(name) || len(name) > maxName {
			c.fail(at+"."+field, "%s is in kebab-case and not longer than %d characters, not %q", field, maxName, name)
		}
	}
	if o.Prefetch < 0 || o.Prefetch > 10_000 {
		c.fail(at+".prefetch", "prefetch is between 1 and 10000, not %d", o.Prefetch)
	}
	if o.Heartbeat.Std()%time.Second != 0 {
		c.fail(at+".heartbeat", "heartbeat is in whole seconds, not %s", o.Heartbeat.Std()) // AMQP 0-9-1 negotiates seconds
	}
	c.oneOf(at+".membership", "membership", o.Membership, []string{Static, Dynamic})
	c.oneOf(at+".protocol", "group protocol", o.Protocol, []string{ProtocolClassic, ProtocolConsumer})
	c.oneOf(at+".isolation", "isolation level", o.Isolation, []string{"read-uncommitted", "read-committed"})
	c.oneOf(at+".subscription-type", "subscription type", o.SubscriptionType, []string{"exclusive", "shared", "failover", "key-shared"})
	if o.Session > 0 && (o.Session.Std() < time.Second || o.Session.Std() > maxSession) {
		c.fail(at+".session", "session is between 1s and %s, not %s", maxSession, o.Session.Std())
	}
	for key := range presentKeys(o) {
		common := []string{"design", "key", "store", "name"}
		if !slices.Contains(common, key) && !slices.Contains(c.driver.Keys(), "consumer."+key) {
			c.fail(at+"."+key, "%s has no consumer key %q", c.driver.Name(), key)
		}
	}
}

// passes lists the checkpoints that a step's role can get to.
func (c *checker) passes(s Step) []gate.Checkpoint {
	switch s.RoleName() {
	case RoleProducer:
		return producerCheckpoints()
	case RoleConsumer:
		d := Designs()[c.sc.ConsumerOf(s).Design]
		return append(slices.Clone(d.First), d.Again...)
	}
	return nil
}

func (c *checker) checkpoint(at, name string, s Step) (gate.Checkpoint, bool) {
	cp, err := gate.ParseCheckpoint(name)
	if err != nil {
		var known []string
		for _, k := range gate.Checkpoints() {
			known = append(known, string(k))
		}
		c.fail(at, "%v%s", err, Nearest(name, known))
		return "", false
	}
	if slices.Contains(c.passes(s), cp) {
		return cp, true
	}
	switch design := c.sc.ConsumerOf(s).Design; {
	case s.RoleName() == "":
		c.fail(at, "a step without a role has no checkpoints")
	case s.RoleName() != RoleConsumer && s.RoleName() != RoleProducer:
		c.fail(at, "the role %s has no checkpoints", s.RoleName())
	case s.RoleName() == RoleProducer:
		c.fail(at, "a producer never passes %s", cp)
	case slices.Contains(DesignNames(), design):
		c.fail(at, "the design %s never passes %s; it passes %s", design, cp, joined(Designs()[design].First))
	}
	return cp, false
}

func joined(cps []gate.Checkpoint) string {
	var s []string
	for _, cp := range cps {
		s = append(s, string(cp))
	}
	return strings.Join(s, ", ")
}

func (c *checker) message(at, name string) {
	var known []string
	for _, list := range c.sc.messageLists() {
		known = append(known, list...)
	}
	slices.Sort(known)
	c.oneOf(at, "message of this scenario", name, slices.Compact(known))
}

func (c *checker) fault(at string, i int, s Step, f Fault) {
	cp, ok := c.checkpoint(at+".at", f.At, s)
	c.message(at+".message", f.Message)
	if f.Arrival < 0 {
		c.fail(at+".arrival", "arrivals count from 1")
	}
	if f.Kind == KindHalt {
		c.oneOf(at+".how", "way to halt", f.How, []string{HowExit, HowKill, HowTerm, HowTermKill})
		if s.RoleName() != RoleConsumer && (f.How == HowTerm || f.How == HowTermKill) {
			c.fail(at+".how", "only a consumer takes SIGTERM as a request to stop")
		}
	}
	if f.Kind == KindFail && s.RoleName() != RoleConsumer {
		c.fail(at, "only a consumer's handler can fail")
	}
	if f.Kind == KindFail && s.Fail.Times < 0 {
		c.fail(at+".times", "times is at least 1")
	}
	if f.Until != nil {
		path := at + ".until"
		if f.Kind == KindHalt {
			path = at + ".when"
		}
		c.condition(path, f.Until)
		c.canHappen(path, i, s, f)
	}
	if ok && (f.Kind == KindHold || f.Kind == KindFreeze) {
		c.endless(at, i, s, f, cp)
	}
}

func (sc *Scenario) index(name string) int {
	return slices.IndexFunc(sc.Steps, func(s Step) bool { return s.Name == name })
}

func (c *checker) stepNames() []string {
	var names []string
	for _, s := range c.sc.Steps {
		names = append(names, s.Name)
	}
	return names
}

// under cuts a prefix off the keys that have it.
func under(prefix string, keys []string) []string {
	var out []string
	for _, k := range keys {
		if rest, ok := strings.CutPrefix(k, prefix); ok {
			out = append(out, rest)
		}
	}
	return out
}
