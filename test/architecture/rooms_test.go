package architecture

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The systems that the module is built for; other build tags bring no imports.
var systems = []string{"linux", "darwin", "windows"}

func TestRooms_ImportDownwardOnly(t *testing.T) {
	readFolders(t, "../..")
	for _, goos := range systems {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			g, err := Load("../..", goos)
			if err != nil {
				t.Fatal(err)
			}
			if len(g[module+"/lease"]) == 0 || g["fmt"] == nil {
				t.Fatalf("the graph of %d packages has no package lease or no standard library", len(g))
			}
			for _, rule := range Check(g, Rooms) {
				t.Error(rule)
			}
		})
	}
}

// "Downward" has a meaning only if the table itself has no circle.
func TestRooms_NameEachOtherWithoutACircle(t *testing.T) {
	may, paths := Graph{}, map[string]bool{}
	for _, r := range Rooms {
		if paths[r.Path] {
			t.Errorf("room %s is in the table twice", r.Path)
		}
		paths[r.Path] = true
		may[r.Path] = r.May
	}
	for _, r := range Rooms {
		for _, m := range r.May {
			if !paths[m] && m != anyRoom && m != anyModule && !strings.Contains(strings.Split(m, "/")[0], ".") {
				t.Errorf("room %s may import %s, which is neither a room nor another module", r.Path, m)
			}
			if way := may.chain(m, func(p string) bool { return p == r.Path }); way != nil {
				t.Errorf("the table has a circle: %s", arrows(slices.Insert(way, 0, r.Path)...))
			}
		}
	}
}

// readFolders looks at every folder below dir. go list does so in a process of its
// own, so that "go test" would not see a changed file and show an old result.
func readFolders(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
