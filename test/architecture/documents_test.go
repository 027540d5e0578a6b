package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	citedTest  = regexp.MustCompile(`\b(?:Test|Fuzz|Example|Benchmark)[A-Z]\w*_?\w*\b`)
	writtenOne = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	linked     = regexp.MustCompile(`\]\(([^)]+)\)`)
)

// What a document cites as the proof of a promise has to be there.
func TestDocuments_CiteTestsThatExist(t *testing.T) {
	written := map[string]bool{}
	for _, source := range readAll(t, "_test.go") {
		for _, m := range writtenOne.FindAllStringSubmatch(source, -1) {
			written[m[1]] = true
		}
	}
	cited := 0
	for path, text := range readAll(t, ".md") {
		for _, name := range citedTest.FindAllString(text, -1) {
			if cited++; !written[name] {
				t.Errorf("%s cites %s, and no test has that name", path, name)
			}
		}
	}
	if cited == 0 || len(written) == 0 {
		t.Errorf("%d tests cited, %d found", cited, len(written))
	}
}

func TestDocuments_LinkToFilesThatExist(t *testing.T) {
	for path, text := range readAll(t, ".md") {
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

// readAll returns the contents of all files of the module whose names end so, by
// path.
func readAll(t testing.TB, suffix string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
