package compose

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// leastJava is what the brokers of today need: Kafka 4 and Pulsar 4 are built
// for Java 17.
const leastJava = 17

// javaHelp is what helps where there is none.
const javaHelp = "apt-get install --no-install-recommends openjdk-17-jdk-headless, or set JAVA_HOME"

// findJava finds a Java that is new enough: of JAVA_HOME, else on the PATH.
func findJava() (string, error) {
	path := ""
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path = filepath.Join(home, "bin", "java")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: JAVA_HOME is set, but there is no %s", ErrMissing, path)
		}
	} else {
		var err error
		if path, err = exec.LookPath("java"); err != nil {
			return "", fmt.Errorf("%w: no java is on the PATH (%s)", ErrMissing, javaHelp)
		}
	}
	version, err := javaVersion(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if version < leastJava {
		return "", fmt.Errorf("%w: %s is Java %d, Java %d is needed (%s)", ErrMissing, path, version, leastJava, javaHelp)
	}
	return path, nil
}

// javaVersion reads the file that every Java keeps beside itself, which is much
// faster than asking it.
func javaVersion(java string) (int, error) {
	whole, err := filepath.EvalSymlinks(java)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", java, err)
	}
	f, err := os.Open(filepath.Join(filepath.Dir(filepath.Dir(whole)), "release"))
	if err == nil {
		defer f.Close() //nolint:errcheck // it is only read
		for s := bufio.NewScanner(f); s.Scan(); {
			if v, ok := strings.CutPrefix(s.Text(), "JAVA_VERSION="); ok {
				return majorJava(v)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", java, err)
	}
	return majorJava(string(out))
}

var javaNumber = regexp.MustCompile(`(\d+)(?:\.(\d+))?`)

// majorJava is the 17 of "17.0.15" and the 8 of "1.8.0_402".
func majorJava(text string) (int, error) {
	m := javaNumber.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no version is found in %q", strings.TrimSpace(text))
	}
	if m[1] == "1" && m[2] != "" {
		return strconv.Atoi(m[2])
	}
	return strconv.Atoi(m[1])
}

// envJava holds more flags for the Java of every broker, such as -Xmx256m.
const envJava = "MQLAB_JAVA_OPTS"

// smallJava are the flags that make a broker start fast and stay small: the
// quick compiler alone and the collector without threads.
func smallJava() []string {
	return append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"}, strings.Fields(os.Getenv(envJava))...)
}
