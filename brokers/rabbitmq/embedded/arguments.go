package embedded

import (
	"fmt"
	"slices"
	"strconv"
)

// classicArguments are those that a classic queue compares, in RabbitMQ's order.
func classicArguments() []string {
	return []string{"x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key",
		"x-max-length", "x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version",
		"x-single-active-consumer", "x-queue-type", "x-queue-master-locator"}
}

// otherArguments belong to quorum queues and streams; a classic one refuses them.
func otherArguments() []string {
	return []string{"x-dead-letter-strategy", "x-max-in-memory-length", "x-max-in-memory-bytes",
		"x-quorum-initial-group-size", "x-delivery-limit", "x-queue-leader-locator", "x-max-age",
		"x-stream-max-segment-size-bytes", "x-initial-cluster-size"}
}

// refusedQueue names what RabbitMQ would do and this server does not.
func refusedQueue(q *queue) error {
	if kind, _ := q.args.text("x-queue-type"); kind == "quorum" || kind == "stream" {
		return notImplemented("x-queue-type=%s", kind)
	}
	for _, name := range []string{"x-expires", "x-max-priority"} {
		if _, ok := q.args.get(name); ok {
			return notImplemented("%s", name)
		}
	}
	if q.args.flag("x-single-active-consumer") {
		return notImplemented("x-single-active-consumer")
	}
	if v, _ := q.args.text("x-overflow"); v == "reject-publish" || v == "reject-publish-dlx" {
		return notImplemented("x-overflow=%s", v)
	}
	return nil
}

// checkQueueArguments words the problems as rabbit_amqqueue does.
func checkQueueArguments(q *queue) error {
	r := resource("queue", q.name)
	if v, ok := q.args.get("x-dead-letter-exchange"); ok {
		if _, text := v.(string); !text {
			return preconditionFailed("invalid type '%s' for arg 'x-dead-letter-exchange' in %s", kindOf(v), r)
		}
	}
	for _, name := range append([]string{"x-queue-type"}, classicArguments()...) {
		v, ok := q.args.get(name)
		if !ok {
			continue
		}
		if problem := argumentProblem(q.args, name, v); problem != "" {
			return preconditionFailed("invalid arg '%s' for %s: %s", name, r, problem)
		}
	}
	for _, a := range q.args {
		if slices.Contains(otherArguments(), a.name) {
			return preconditionFailed("invalid arg '%s' for %s of queue type rabbit_classic_queue", a.name, r)
		}
	}
	return nil
}

// argumentProblem is what RabbitMQ's validators say, in Erlang's notation.
func argumentProblem(args table, name string, v any) string {
	switch name {
	case "x-message-ttl", "x-max-length", "x-max-length-bytes", "x-queue-version":
		return integerProblem(name, v)
	case "x-single-active-consumer":
		if _, ok := v.(bool); !ok {
			return "{unacceptable_type," + kindOf(v) + "}"
		}
		return ""
	case "x-queue-master-locator": // RabbitMQ does not look at it either
		return ""
	}
	s, ok := v.(string)
	if !ok {
		return "{unacceptable_type," + kindOf(v) + "}"
	}
	return textProblem(args, name, s)
}

func textProblem(args table, name, s string) string {
	switch name {
	case "x-dead-letter-routing-key":
		if _, ok := args.get("x-dead-letter-exchange"); !ok {
			return "routing_key_but_no_dlx_defined"
		}
	case "x-overflow":
		if s != "drop-head" {
			return "invalid_overflow"
		}
	case "x-queue-mode":
		if s != "default" && s != "lazy" {
			return fmt.Sprintf(`"unsupported queue mode '%s'"`, s)
		}
	case "x-queue-type":
		if s != "classic" {
			return fmt.Sprintf(`"unsupported queue type '%s'"`, s)
		}
	}
	return ""
}

func integerProblem(name string, v any) string {
	n, ok := integer(v)
	switch {
	case !ok:
		return fmt.Sprintf(`"expected integer, got %s"`, kindOf(v))
	case name == "x-message-ttl":
		return checkExpiry(n)
	case n < 0:
		return "{value_negative," + strconv.FormatInt(n, 10) + "}"
	case name == "x-queue-version" && n != 1 && n != 2:
		return fmt.Sprintf(`"unsupported queue version '%d'"`, n)
	}
	return ""
}

func checkConsumeArguments(q *queue, args table) error {
	for _, name := range []string{"x-priority", "x-credit"} {
		if _, ok := args.get(name); ok {
			return notImplemented("consumer argument %s", name)
		}
	}
	if _, ok := args.get("x-stream-offset"); ok {
		return preconditionFailed("invalid arg 'x-stream-offset' for %s of queue type rabbit_classic_queue", resource("queue", q.name))
	}
	return nil
}
