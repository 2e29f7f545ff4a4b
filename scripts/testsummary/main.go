// Command testsummary reads the stream of `go test -json` on standard input and
// prints what a person wants of it: one line per package, the whole output of
// every test that failed, and nothing of those that passed. The count goes to
// the file named by -count, so that the caller can print it last of all.
//
// Exit status: 0 when everything passed, 1 when anything failed or nothing ran,
// 2 when the stream could not be read.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// maxLineBytes bounds one event of the stream; go test cuts its own lines well
// below this.
const maxLineBytes = 4 << 20

func main() {
	count := flag.String("count", "", "file to write the final count to (default: standard output)")
	flag.Parse()
	s := newSummary(os.Stdout)
	if err := read(os.Stdin, s); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(2)
	}
	total := s.count()
	if err := writeCount(*count, total); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(2)
	}
	if total.failed > 0 || total.passed == 0 {
		os.Exit(1)
	}
}

func read(r io.Reader, s *summary) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLineBytes)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// Not an event: go itself complains in plain text.
			fmt.Fprintln(s.out, lines.Text())
			continue
		}
		s.add(e)
	}
	return lines.Err()
}

func writeCount(name string, t totals) error {
	if name == "" {
		_, err := fmt.Println(t)
		return err
	}
	return os.WriteFile(name, []byte(t.String()+"\n"), 0o644)
}
