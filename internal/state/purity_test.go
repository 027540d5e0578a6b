package state_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the package may use. Nothing of it knows the time, chance, the machine it
// runs on, or tables that differ between versions of Go.
var (
	pureImports = []string{
		"bufio", "bytes", "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash", "io", "iter",
		"slices", "strconv", "strings", "sync", "time", "unicode/utf8",
	}
	pureTime = []string{"Duration", "Millisecond", "Hour"}
)

func TestSource_HasNoClockNoChanceAndNoOrderOfMaps(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(pureImports, path) {
				t.Errorf("%s: import of %s", fset.Position(i.Pos()), path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if why := impure(n); why != "" {
				t.Errorf("%s: %s", fset.Position(n.Pos()), why)
			}
			return true
		})
	}
	if files < 5 {
		t.Fatalf("only %d files were read", files)
	}
}

func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MapType:
		return "a map, whose order differs between runs"
	case *ast.GoStmt, *ast.SelectStmt:
		return "a choice of the scheduler"
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && !slices.Contains(pureTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	}
	return ""
}
