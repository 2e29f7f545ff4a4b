package conf

import (
	_ "embed" // for REFERENCE.md
	"strings"
)

//go:embed REFERENCE.md
var reference string

// Reference is the documentation of every key, in Markdown. It is made from the types and comments of the Config
// structs; a test keeps it so, and writes it anew with `go test ./conf -run Reference -update`.
func Reference() string { return reference }

// Entry documents one key.
type Entry struct {
	Key     string `json:"key"`
	Env     string `json:"env"` // the variable that overrides it
	Type    string `json:"type"`
	Default string `json:"default"`
	Allowed string `json:"allowed"`
	Meaning string `json:"meaning"`
}

// Entries lists what Reference says, in its order.
func Entries() []Entry {
	meant := map[string][]string{}
	for _, line := range strings.Split(reference, "\n") {
		if cells := strings.Split(line, " | "); len(cells) == entryColumns && strings.HasPrefix(line, "| `") {
			cells[0] = strings.Trim(cells[0], "| `")
			cells[entryColumns-1] = strings.TrimSuffix(cells[entryColumns-1], " |")
			meant[cells[0]] = cells
		}
	}
	var all []Entry
	for _, leaf := range Default().tree().leaves() {
		cells := meant[leaf.path]
		if cells == nil {
			continue
		}
		all = append(all, Entry{
			Key: leaf.path, Env: leaf.env(), Type: cells[1], Default: strings.Trim(cells[2], "`"), Allowed: cells[3], Meaning: cells[4],
		})
	}
	return all
}

// entryColumns is how many columns the tables of the reference have: key, type, default, allowed, meaning.
const entryColumns = 5
