package architecture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check holds g against the table and returns every broken rule, in the order
// of the packages' paths, each with the chain of imports that breaks it.
func Check(g Graph, rooms []Room) []string {
	var broken []string
	for _, pkg := range slices.Sorted(maps.Keys(g)) {
		if !within(pkg, module) {
			continue
		}
		r := roomOf(pkg, rooms)
		if r == nil {
			broken = append(broken, fmt.Sprintf(
				"room %s is not in the table: add it to Rooms with what it may import", relative(pkg)))
			continue
		}
		for _, imported := range g[pkg] {
			if rule := r.breaks(imported, rooms); rule != "" {
				broken = append(broken, rule+": "+arrows(pkg, imported))
			}
		}
		for _, never := range r.Never {
			if way := g.chain(pkg, func(p string) bool { return within(p, never) }); way != nil {
				broken = append(broken, fmt.Sprintf("room %s must never reach %s: %s", r.Path, never, arrows(way...)))
			}
		}
	}
	return broken
}

// breaks names the rule that an import breaks, "" for none.
func (r *Room) breaks(imported string, rooms []Room) string {
	switch {
	case within(imported, module):
		other := roomOf(imported, rooms)
		switch {
		case other == nil:
			return "" // reported as a package of its own
		case other.Path == r.Path:
			return ""
		case other.Top:
			return fmt.Sprintf("no room may import room %s", other.Path)
		case slices.Contains(r.May, other.Path), slices.Contains(r.May, anyRoom):
			return ""
		}
		return fmt.Sprintf("room %s may not import room %s", r.Path, other.Path)
	case standard(imported):
		for _, not := range r.NotStd {
			if within(imported, not) {
				return fmt.Sprintf("room %s may not import %s", r.Path, not)
			}
		}
		return ""
	}
	for _, may := range r.May {
		if may == anyModule || within(imported, may) {
			return ""
		}
	}
	return fmt.Sprintf("room %s may not import module of %s", r.Path, imported)
}

// roomOf returns the room that has the package, the one with the longest path.
func roomOf(pkg string, rooms []Room) *Room {
	path := relative(pkg)
	var best *Room
	for i := range rooms {
		r := &rooms[i]
		if path != r.Path && !(r.Tree && within(path, r.Path)) {
			continue
		}
		if best == nil || len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best
}

// relative returns the path of a package of the module as the table has it.
func relative(pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

func arrows(chain ...string) string { return strings.Join(chain, " → ") }
