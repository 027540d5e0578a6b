package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Graph maps every package to the packages that it imports. Both are import
// paths.
type Graph map[string][]string

// Load returns the graph of all packages of the module in dir and of everything
// they need, as they are built for the operating system goos.
func Load(dir, goos string) (Graph, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list for %s: %w\n%s", goos, err, problems.Bytes())
	}
	g := Graph{}
	for d := json.NewDecoder(&out); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return g, nil
		case err != nil:
			return nil, fmt.Errorf("output of go list for %s: %w", goos, err)
		}
		g[p.ImportPath] = p.Imports
	}
}

// chain returns the shortest way over imports from one package to one that
// matches, nil when there is none. Known imports of other modules are not
// followed.
func (g Graph) chain(from string, matches func(string) bool) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && matches(at) {
			var way []string
			for ; at != ""; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, next := range g[at] {
			if _, seen := before[next]; seen || upstream[[2]string{at, next}] != "" {
				continue
			}
			before[next] = at
			queue = append(queue, next)
		}
	}
	return nil
}

// within reports whether path is the package root or one below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// standard reports whether path is of the standard library.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
