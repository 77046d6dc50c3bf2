// Package expected holds what each lab must show: one file per lab, the path of
// its scenario with expected/ in the place of labs/. It has no code beside the
// folder itself; package assert reads the files.
package expected

import (
	"embed"
	"io/fs"
)

//go:embed */*.yaml
var files embed.FS

// Files is the folder, BROKER/NAME.yaml.
func Files() fs.FS { return files }
