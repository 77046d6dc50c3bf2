package labs

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds a lab, expected or fixture file, in bytes; the longest of ours
// has about three thousand.
const maxFile = 1 << 20

// maxDepth and maxColumn bound how deep a file nests, in flow and in block
// style; ours need about six levels.
const (
	maxDepth  = 64
	maxColumn = 4096
)

// File is a lab or expected file as it was read.
type File struct {
	Path string `json:"path"` // as shown to the user
	Text string `json:"text"`
}

// FileError is a mistake in a file, with the place and an excerpt.
type FileError struct {
	File      string
	Line, Col int // from 1; 0 when the mistake has no place
	Message   string
	Excerpt   string
}

// Error is file:line:column: message, then the excerpt on lines of its own.
func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Col)
	}
	s += ": " + e.Message
	if e.Excerpt != "" {
		s += "\n" + e.Excerpt
	}
	return s
}

// Decode reads one YAML document into v. An unknown or doubled key, a wrong
// type, a second document, an anchor, an alias or a tag is a *FileError.
func Decode(f File, v any) (err error) {
	// The YAML library has panicked on files that fuzzing found.
	defer func() {
		if r := recover(); r != nil {
			err = &FileError{File: f.Path, Message: fmt.Sprintf("this is not YAML that can be read: %v", r)}
		}
	}()
	if len(f.Text) > maxFile {
		return &FileError{File: f.Path, Message: fmt.Sprintf("the file has %d bytes, more than the %d that a lab may have", len(f.Text), maxFile)}
	}
	if err := screen(f); err != nil {
		return err
	}
	err = yaml.NewDecoder(strings.NewReader(f.Text), yaml.Strict()).Decode(v)
	if err == nil {
		return nil
	}
	var place misplaced
	if errors.As(err, &place) {
		return f.errorAt(place.token, place.message)
	}
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return &FileError{File: f.Path, Message: err.Error()}
	}
	msg := at.GetMessage()
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		word := strings.Trim(strings.TrimPrefix(msg, "unknown field "), `"`)
		msg = fmt.Sprintf("unknown key %q%s", word, Nearest(word, keysOf(reflect.TypeOf(v))))
	}
	return f.errorAt(at.GetToken(), msg)
}

// misplaced is a value's own mistake, with its place.
type misplaced struct {
	token   *token.Token
	message string
}

func (m misplaced) Error() string { return m.message }

// screen refuses what the lab language does not have, before anything is
// decoded: several documents, anchors (which can make a small file huge), tags,
// and nesting that no lab needs.
func screen(f File) error {
	if strings.HasPrefix(f.Text, "\ufeff") {
		return &FileError{File: f.Path, Line: 1, Col: 1, Message: "the file begins with a byte order mark: save it without one"}
	}
	flow, content := 0, false
	for _, t := range lexer.Tokenize(f.Text) {
		switch t.Type {
		case token.CommentType:
			continue
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return f.errorAt(t, "anchors and aliases are not part of the lab language")
		case token.TagType:
			return f.errorAt(t, "tags are not part of the lab language")
		case token.DocumentHeaderType:
			if content {
				return f.errorAt(t, "a second document in the file")
			}
			continue
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
		content = true
		if flow > maxDepth || t.Position.Column > maxColumn {
			return f.errorAt(t, "the file nests too deep")
		}
	}
	if !content {
		return &FileError{File: f.Path, Line: 1, Col: 1, Message: "the file is empty"}
	}
	return nil
}

// ErrorAt is a mistake at a path such as $.steps[2].halt.at.
func (f File) ErrorAt(path, message string) error {
	if tok := f.find(path); tok != nil {
		return f.errorAt(tok, message)
	}
	return &FileError{File: f.Path, Message: strings.TrimPrefix(path, "$.") + ": " + message}
}

// find returns the token of a path, or of the nearest path above it that exists.
func (f File) find(path string) (found *token.Token) {
	defer func() {
		if recover() != nil { // as in Decode
			found = nil
		}
	}()
	tree, err := parser.ParseBytes([]byte(f.Text), 0)
	if err != nil {
		return nil
	}
	for path != "" {
		p, err := yaml.PathString(path)
		if err == nil {
			if n, err := p.FilterFile(tree); err == nil && n != nil {
				return firstToken(n)
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut <= 0 {
			return nil
		}
		path = path[:cut]
	}
	return nil
}

// firstToken is where a reader looks for a node: a mapping's first key, else
// its value.
func firstToken(n ast.Node) *token.Token {
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			return m.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return m.Key.GetToken()
	}
	return n.GetToken()
}

func (f File) errorAt(t *token.Token, message string) error {
	return &FileError{File: f.Path, Line: t.Position.Line, Col: t.Position.Column, Message: message,
		Excerpt: f.excerpt(t.Position.Line, t.Position.Column)}
}

// excerpt shows the line, cut to a readable length, with a caret under the column.
func (f File) excerpt(line, col int) string {
	lines := bytes.Split([]byte(f.Text), []byte("\n"))
	if line < 1 || line > len(lines) {
		return ""
	}
	text := []rune(strings.TrimRight(string(lines[line-1]), "\r"))
	from := max(0, min(col-60, len(text)))
	to := min(len(text), from+120)
	shown := strings.Map(func(r rune) rune {
		if r == '\t' || r < ' ' {
			return ' '
		}
		return r
	}, string(text[from:to]))
	return fmt.Sprintf("%5d | %s\n      | %s^", line, shown, strings.Repeat(" ", max(0, col-1-from)))
}

// keysOf lists every key that a type and what it holds can have.
func keysOf(t reflect.Type) []string {
	var keys []string
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				keys = append(keys, name)
			}
			walk(t.Field(i).Type)
		}
	}
	walk(t)
	return keys
}
