package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mqlab/brokers"
)

// copyJars is the goal that copies an artifact's jars, with the plugin's
// version pinned as the artifacts are.
const copyJars = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

const (
	// installTimeout bounds the resolving; 240 MB take half a minute here.
	installTimeout = 15 * time.Minute
	// archiveTimeout bounds the start and the end of the broker that writes its
	// class-data archive, without which everything is slower.
	archiveTimeout = 3 * time.Minute
)

// Pull gets the image of a broker's container, if the engine has not got it.
func (o *Opener) Pull(ctx context.Context, product string) error {
	e, err := o.engine(ctx)
	if err != nil {
		return fmt.Errorf("pull the image of %s: %w", product, err)
	}
	c, err := composeOf(product, variables{})
	if err != nil {
		return err
	}
	got, err := e.image(ctx, o, imageVariable(product), e.prefixed(c.Image))
	if err != nil {
		return err
	}
	o.note(fmt.Sprintf("the engine has %s: %s", e.prefixed(c.Image), got))
	return nil
}

// Install resolves a broker's jars with Maven into the user's cache folder,
// checks them and makes the class-data archive that lets the broker start in a
// third of the time (JEP 350). It can be interrupted and repeated: what is
// whole stays, what is not is made again.
func (o *Opener) Install(ctx context.Context, product string) error {
	driver, err := o.Registry.Driver(product)
	if err != nil {
		return err
	}
	r, err := recipeOf(product)
	if err != nil {
		return err
	}
	d, ok := r.(distribution)
	if !ok {
		if err := r.missing(); err != nil {
			return err
		}
		o.note(product + " is installed")
		return nil
	}
	java, err := findJava()
	if err != nil {
		return err
	}
	dir, err := d.installed()
	if err != nil {
		return err
	}
	if _, err := checkJars(dir, filepath.Join(dir, libFolder), true); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			o.note(fmt.Sprintf("%s %s in %s is damaged and is installed again: %v", product, d.version, dir, err))
		}
		if err := o.resolve(ctx, d, java, dir); err != nil {
			return fmt.Errorf("install %s %s: %w", product, d.version, err)
		}
	} else {
		o.note(fmt.Sprintf("%s %s is whole in %s", product, d.version, dir))
	}
	if exists(filepath.Join(dir, archiveFile)) {
		return nil
	}
	start := time.Now()
	if err := o.makeArchive(ctx, d, driver, java, dir); err != nil {
		return fmt.Errorf("make the class-data archive of %s: %w", product, err)
	}
	st, err := os.Stat(filepath.Join(dir, archiveFile))
	if err != nil {
		return fmt.Errorf("make the class-data archive of %s: %w", product, err)
	}
	o.note(fmt.Sprintf("%s %s: class-data archive of %d MB after %.1f s", product, d.version, st.Size()>>20, time.Since(start).Seconds()))
	return nil
}

// resolve fills a folder beside the final one and renames it when it is whole.
func (o *Opener) resolve(ctx context.Context, d distribution, java, dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: no mvn is on the PATH (apt-get install --no-install-recommends maven, or set %s to a distribution's folder)", ErrMissing, d.homeVar)
	}
	start := time.Now()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := sweepInstalls(dir); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // after the rename there is nothing
	o.note(fmt.Sprintf("%s %s: Maven resolves its jars into %s", d.product, d.version, dir))
	if err := configure(d.product, fresh, nil, "pom.xml"); err != nil {
		return err
	}
	lib := filepath.Join(fresh, libFolder)
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", filepath.Join(fresh, "pom.xml"), copyJars, "-DoutputDirectory="+lib, "-DincludeScope=runtime")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // mvn is a script: its Java must end with it
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("resolve the jars: %w: %s", errors.Join(err, ctx.Err()), brokers.LastWords(out))
	}
	if err := d.dropForeign(lib); err != nil {
		return err
	}
	n, size, err := listJars(fresh, lib)
	if err != nil {
		return err
	}
	jars, err := filepath.Glob(filepath.Join(lib, "*.jar"))
	if err != nil {
		return err
	}
	if d.after != nil {
		if err := d.after(ctx, &jvm{java: java, jars: jars, flags: d.flags}, fresh); err != nil {
			return err
		}
	}
	// Whoever uses the damaged one goes on with the files that it has open.
	if err := errors.Join(os.RemoveAll(dir), os.Rename(fresh, dir)); err != nil {
		return err
	}
	o.note(fmt.Sprintf("%s %s: %d jars, %d MB after %.1f s", d.product, d.version, n, size>>20, time.Since(start).Seconds()))
	return nil
}

// sweepInstalls removes what killed installations of the same version have
// left; one that goes on is younger than its own bound.
func sweepInstalls(dir string) error {
	left, err := filepath.Glob(dir + ".new-*")
	if err != nil {
		return err
	}
	for _, l := range left {
		st, err := os.Stat(l)
		if err != nil || time.Since(st.ModTime()) < installTimeout {
			continue
		}
		if err := os.RemoveAll(l); err != nil {
			return err
		}
	}
	return nil
}

// dropForeign removes what is for other systems.
func (d distribution) dropForeign(lib string) error {
	files, err := os.ReadDir(lib)
	if err != nil {
		return err
	}
	for _, f := range files {
		for _, part := range d.foreign {
			if strings.Contains(f.Name(), part) {
				if err := os.Remove(filepath.Join(lib, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// makeArchive starts the broker once, sends a message through it, and ends it
// in order: Java writes the archive when it ends.
func (o *Opener) makeArchive(ctx context.Context, d distribution, driver brokers.Driver, java, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	j, err := d.jvmInstalled(java)
	if err != nil {
		return err
	}
	archive := filepath.Join(dir, archiveFile)
	fresh := fmt.Sprintf("%s.new-%d", archive, os.Getpid())
	defer os.Remove(fresh) //nolint:errcheck // after the rename there is nothing
	j.archive, j.making = fresh, true
	home, err := o.brokerDir(d.product)
	if err != nil {
		return err
	}
	n, err := d.nodeOf(ctx, j, home)
	if err != nil {
		return errors.Join(err, os.RemoveAll(home))
	}
	p, err := o.startGuarded(n.spec)
	if err != nil {
		return err
	}
	p.ready = n.ready(driver)
	if _, err := p.awaitReady(ctx, archiveTimeout); err != nil {
		return failedStart(p, err)
	}
	if err := errors.Join(p.Act(ctx, brokers.Stop), p.Release()); err != nil {
		return err
	}
	return os.Rename(fresh, archive)
}
