package assert

import (
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"mqlab/labs"
)

// kind is what a node of a file is.
type kind int

const (
	isText kind = iota
	isNumber
	isBool
	isNull
	isList
	isMap
	isOther // a tag or another thing that the language does not have
)

// node is a value of a file with its place. The order of a mapping is that of
// the file, which a Go map would lose.
type node struct {
	kind    kind
	text    string // of a scalar: as it stands there, without quotes
	number  int64  // of a number that is whole
	whole   bool
	items   []node  // of a list
	entries []entry // of a mapping
	at      *token.Token
}

type entry struct {
	key   string
	at    *token.Token
	value node
}

// parse reads the file's one document.
func parse(f labs.File) (n node, err error) {
	// The YAML library is not ours; a file must never end the program.
	defer func() {
		if p := recover(); p != nil {
			err = &labs.FileError{File: f.Path, Message: fmt.Sprintf("the file cannot be read as YAML: %v", p)}
		}
	}()
	var screened yaml.MapSlice
	if err := labs.Decode(f, &screened); err != nil {
		return node{}, err
	}
	tree, err := parser.ParseBytes([]byte(f.Text), 0)
	if err != nil || len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return node{}, &labs.FileError{File: f.Path, Line: 1, Col: 1, Message: "the file is empty"}
	}
	for _, d := range tree.Docs {
		if d.Body != nil {
			return newNode(d.Body), nil
		}
	}
	return node{}, nil
}

func newNode(n ast.Node) node {
	out := node{at: n.GetToken(), kind: isOther}
	switch v := n.(type) {
	case *ast.StringNode:
		out.kind, out.text = isText, v.Value
	case *ast.LiteralNode:
		out.kind, out.text = isText, v.Value.Value
	case *ast.BoolNode:
		out.kind, out.text = isBool, fmt.Sprint(v.Value)
	case *ast.NullNode:
		out.kind = isNull
	case *ast.IntegerNode:
		out.kind, out.text = isNumber, v.Token.Value
		out.number, out.whole = wholeNumber(v.Value)
	case *ast.FloatNode:
		out.kind, out.text = isNumber, v.Token.Value
		out.number, out.whole = wholeNumber(v.Value)
	case *ast.SequenceNode:
		out.kind = isList
		for _, item := range v.Values {
			out.items = append(out.items, newNode(item))
		}
	case ast.MapNode:
		out.kind = isMap
		for it := v.MapRange(); it.Next(); {
			out.entries = append(out.entries, entry{keyText(it.Key()), it.Key().GetToken(), newNode(it.Value())})
		}
	}
	return out
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return k.GetToken().Value
}

func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case uint64:
		return int64(min(n, math.MaxInt64)), n <= math.MaxInt64
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) < 1<<53
	}
	return 0, false
}

func (k kind) String() string {
	return [...]string{"a text", "a number", "true or false", "nothing", "a list", "a mapping", "a tagged value"}[k]
}

func (n node) scalar() bool { return n.kind == isText || n.kind == isNumber || n.kind == isBool }

func splitLines(f labs.File) []string { return strings.Split(f.Text, "\n") }

// fail notes a mistake with its place and the line with a caret under it.
func (d *decoder) fail(at *token.Token, format string, a ...any) {
	e := &labs.FileError{File: d.file.Path, Message: fmt.Sprintf(format, a...)}
	if at != nil && at.Position != nil {
		e.Line, e.Col = at.Position.Line, at.Position.Column
		e.Excerpt = d.excerpt(e.Line, e.Col)
	}
	d.errs = append(d.errs, e)
}

// excerpt cuts the line to a readable length, as package labs does.
func (d *decoder) excerpt(line, col int) string {
	if line < 1 || line > len(d.lines) {
		return ""
	}
	text := []rune(strings.TrimRight(d.lines[line-1], "\r"))
	from := max(0, min(col-60, len(text)))
	to := min(len(text), from+120)
	return fmt.Sprintf("%5d | %s\n      | %s^", line, printable(string(text[from:to]), ' '), strings.Repeat(" ", max(0, col-1-from)))
}

// printable replaces what a terminal would act on.
func printable(s string, by rune) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return by
		}
		return r
	}, s)
}

func readBuiltin(fixture string) ([]byte, error) {
	return fs.ReadFile(labs.Builtin(), "messages/"+fixture+".json")
}
