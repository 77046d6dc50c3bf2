package embedded

import "strings"

// words splits a topic as RabbitMQ does: an empty key has no word at all.
func words(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

// topicMatch matches in time proportional to the two lengths multiplied, so
// that a pattern full of # cannot hold up the broker: it goes back to the
// last # only, as shell patterns do with a star.
func topicMatch(pattern, key []string) bool {
	p, k := 0, 0
	hash, from := -1, 0
	for k < len(key) {
		switch {
		case p < len(pattern) && pattern[p] == "#":
			hash, from = p, k
			p++
		case p < len(pattern) && (pattern[p] == "*" || pattern[p] == key[k]):
			p++
			k++
		case hash >= 0:
			from++
			p, k = hash+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "#" {
		p++
	}
	return p == len(pattern)
}

// headersMatch follows rabbit_exchange_type_headers: x-match itself never
// counts, other x- headers only with the -with-x modes, a void asks for presence.
func headersMatch(args, headers table) bool {
	mode, _ := args.text("x-match")
	withX := strings.HasSuffix(mode, "-with-x")
	all, any := true, false
	for _, want := range args {
		if want.name == "x-match" || !withX && strings.HasPrefix(want.name, "x-") {
			continue
		}
		got, ok := headers.get(want.name)
		if ok && (want.value == nil || sameHeader(want.value, got)) {
			any = true
		} else {
			all = false
		}
	}
	if strings.HasPrefix(mode, "any") {
		return any
	}
	return all
}

// checkMatchMode refuses what RabbitMQ refuses in a binding to a headers exchange.
func checkMatchMode(args table) error {
	v, ok := args.get("x-match")
	if !ok {
		return nil
	}
	mode, isText := v.(string)
	if !isText {
		return preconditionFailed("Invalid x-match field type %s (value %s); expected longstr", kindOf(v), term(v))
	}
	switch mode {
	case "all", "any", "all-with-x", "any-with-x":
		return nil
	}
	return preconditionFailed(`Invalid x-match field value <<"%s">>; expected all, any, all-with-x, or any-with-x`, mode)
}
