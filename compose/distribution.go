package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// distribution is a broker that runs on Java: where its jars are and how it is
// started with them.
type distribution struct {
	product string
	version string // that is installed by `broker install`; the pom says the same
	homeVar string // the variable with a folder of the product's own distribution
	homeLib string // where the jars lie in it
	foreign []string
	flags   []string
	// arrange writes the configuration and chooses the ports; main is the class
	// with its arguments.
	arrange func(ctx context.Context, j *jvm, dir string) (main []string, n *node, err error)
	// after runs when the jars are installed, in the folder they lie in.
	after func(ctx context.Context, j *jvm, dir string) error
}

// jvm is a Java with a class path.
type jvm struct {
	java    string
	jars    []string
	cache   string // the installed distribution's folder; empty for one of the user's own
	flags   []string
	archive string // a class-data archive to use, or to make
	making  bool
}

const (
	libFolder   = "lib"
	archiveFile = "classes.jsa"
)

// installed is where `broker install` puts a distribution.
func (d distribution) installed() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "mqlab", d.product+"-"+d.version), nil
}

// missing says what helps.
func (d distribution) missing() error {
	_, err := d.jvm()
	return err
}

// jvm finds Java and the jars: of the user's own distribution, or installed.
func (d distribution) jvm() (*jvm, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	j := &jvm{java: java, flags: d.flags}
	if home := os.Getenv(d.homeVar); home != "" {
		j.jars, err = filepath.Glob(filepath.Join(home, d.homeLib, "*.jar"))
		if err != nil || len(j.jars) == 0 {
			return nil, fmt.Errorf("%w: %s is set, but there are no jars in %s", ErrMissing, d.homeVar, filepath.Join(home, d.homeLib))
		}
		slices.Sort(j.jars)
		return j, nil
	}
	return d.jvmInstalled(java)
}

// jvmInstalled is the jvm of what `broker install` has put into the cache.
func (d distribution) jvmInstalled(java string) (*jvm, error) {
	j := &jvm{java: java, flags: d.flags}
	dir, err := d.installed()
	if err != nil {
		return nil, err
	}
	help := fmt.Sprintf("mqlab broker install %s, or set %s", d.product, d.homeVar)
	j.jars, err = checkJars(dir, filepath.Join(dir, libFolder), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not installed (%s)", ErrMissing, d.product, help)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the installed %s is damaged: %w (%s)", ErrMissing, d.product, err, help)
	}
	j.cache = dir
	if archive := filepath.Join(dir, archiveFile); exists(archive) {
		j.archive = archive
	}
	return j, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// node lays out a broker.
func (d distribution) node(ctx context.Context, dir string) (*node, error) {
	j, err := d.jvm()
	if err != nil {
		return nil, err
	}
	return d.nodeOf(ctx, j, dir)
}

func (d distribution) nodeOf(ctx context.Context, j *jvm, dir string) (*node, error) {
	main, n, err := d.arrange(ctx, j, dir)
	if err != nil {
		return nil, err
	}
	argv, err := j.command(dir, main...)
	if err != nil {
		return nil, err
	}
	n.spec = guardSpec{Dir: dir, Commands: [][]string{argv}, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}}
	if j.cache != "" {
		n.version = d.version
	}
	return n, nil
}

// command writes the long arguments into a file of the broker's folder, as
// java(1) takes them, and returns the short command.
func (j *jvm) command(dir string, main ...string) ([]string, error) {
	args := slices.Concat(j.flags, smallJava())
	switch {
	case j.making:
		args = append(args, "-XX:ArchiveClassesAtExit="+j.archive)
	case j.archive != "":
		args = append(args, "-Xshare:auto", "-XX:SharedArchiveFile="+j.archive) // one of another Java is passed over
	}
	file, err := argsFile(dir, append(append(args, "-cp", classPath(j.jars)), main...)...)
	return []string{j.java, file}, err
}

func classPath(jars []string) string { return strings.Join(jars, string(os.PathListSeparator)) }

// argsFile writes arguments into a file and returns the one that names it.
func argsFile(dir string, args ...string) (string, error) {
	file := filepath.Join(dir, "java.args")
	var b strings.Builder
	for _, a := range args {
		b.WriteString(quoteJava(a) + "\n")
	}
	return "@" + file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// quoteJava quotes an argument for such a file.
func quoteJava(a string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a) + `"`
}
