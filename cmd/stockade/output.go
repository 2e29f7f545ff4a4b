package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// formats are the values of -o.
var formats = []string{"table", "json", "jsonl", "none"}

func (c *cli) checkFormat() error {
	if !slices.Contains(formats, c.format) {
		return fail(exitUsage, fmt.Errorf("-o %s: must be one of %s", c.format, strings.Join(formats, ", ")))
	}
	return nil
}

// result is what a command has to say.
type result struct {
	header []string
	rows   [][]string // one per object
	// objects in the order of rows; what -o json and jsonl print.
	objects []any
	single  bool // -o json prints the one object, not a list of one
}

func (r *result) add(object any, row ...string) {
	r.objects = append(r.objects, object)
	r.rows = append(r.rows, row)
}

// print writes a result in the form of -o.
func (c *cli) print(r result) error {
	switch c.format {
	case "none":
		return nil
	case "json":
		enc := json.NewEncoder(c.stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if r.single && len(r.objects) == 1 {
			return enc.Encode(r.objects[0])
		}
		if r.objects == nil {
			r.objects = []any{}
		}
		return enc.Encode(r.objects)
	case "jsonl":
		enc := json.NewEncoder(c.stdout)
		enc.SetEscapeHTML(false)
		for _, object := range r.objects {
			if err := enc.Encode(object); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{r.header}, r.rows...) {
		if len(row) > 0 {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	return w.Flush()
}

// fields prints one object as lines of name and value.
func (c *cli) fields(object any, pairs ...[2]string) error {
	if c.format != "table" {
		return c.print(result{objects: []any{object}, rows: [][]string{nil}, single: true})
	}
	r := result{}
	for _, p := range pairs {
		r.rows = append(r.rows, p[:])
	}
	return c.print(r)
}
