package compose

import (
	"archive/zip"
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// jarList, in an installed distribution's folder, has a line for each jar:
// SHA-256, size in bytes, name.
const jarList = "jars.txt"

// jar is one line of the list.
type jar struct {
	sum  string
	size int64
	name string
}

// listJars writes the list of a folder's jars after it has opened each: a
// truncated zip file has no directory at its end.
func listJars(dir, lib string) (count int, bytes int64, err error) {
	files, err := filepath.Glob(filepath.Join(lib, "*.jar"))
	if err != nil || len(files) == 0 {
		return 0, 0, errors.Join(err, fmt.Errorf("no jar is in %s", lib))
	}
	slices.Sort(files)
	var b strings.Builder
	for _, f := range files {
		z, err := zip.OpenReader(f)
		if err != nil {
			return 0, 0, fmt.Errorf("check %s: %w", filepath.Base(f), err)
		}
		if err := z.Close(); err != nil {
			return 0, 0, err
		}
		sum, size, err := sumOf(f)
		if err != nil {
			return 0, 0, err
		}
		fmt.Fprintf(&b, "%s %d %s\n", sum, size, filepath.Base(f))
		bytes += size
	}
	return len(files), bytes, os.WriteFile(filepath.Join(dir, jarList), []byte(b.String()), 0o600)
}

func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("read %s: %w", path, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), size, nil
}

// readJars reads the list of an installed distribution.
func readJars(dir string) ([]jar, error) {
	f, err := os.Open(filepath.Join(dir, jarList))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	var jars []jar
	s := bufio.NewScanner(f)
	for s.Scan() {
		var j jar
		if _, err := fmt.Sscan(s.Text(), &j.sum, &j.size, &j.name); err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		jars = append(jars, j)
	}
	return jars, s.Err()
}

// checkJars compares the files with the list: their sizes, which is enough for
// a start and takes a millisecond, or their sums too.
func checkJars(dir, lib string, whole bool) ([]string, error) {
	jars, err := readJars(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, j := range jars {
		path := filepath.Join(lib, j.name)
		st, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s is gone", j.name)
		case st.Size() != j.size:
			return nil, fmt.Errorf("%s has %d bytes instead of %d", j.name, st.Size(), j.size)
		}
		if whole {
			if sum, _, err := sumOf(path); err != nil || sum != j.sum {
				return nil, errors.Join(err, fmt.Errorf("%s is not what was installed", j.name))
			}
		}
		paths = append(paths, path)
	}
	return paths, nil
}
