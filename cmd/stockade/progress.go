package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// showProgress returns what is to be called once for each thing done, by any goroutine. People at a terminal see a bar;
// a file or a pipe gets at most ten lines.
func showProgress(out io.Writer, what string, total int) func() {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bar := progressbar.NewOptions(total, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(40),
			progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionOnCompletion(func() { fmt.Fprintln(out) }))
		return func() { _ = bar.Add(1) }
	}
	var mu sync.Mutex // also keeps the lines in order
	done, tenth := 0, (total+9)/10
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if done%tenth == 0 || done == total {
			fmt.Fprintf(out, "%s: %d of %d\n", what, done, total)
		}
	}
}

// waitingEvery is the pause between two lines about work whose end nobody can foresee.
const waitingEvery = 5 * time.Second

// showWaiting writes a line each waitingEvery until the returned function is called.
func showWaiting(out io.Writer, what string) (stop func()) {
	done := make(chan struct{})
	var writing sync.WaitGroup
	start := time.Now()
	writing.Go(func() {
		tick := time.NewTicker(waitingEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(out, "%s: %s so far\n", what, time.Since(start).Round(time.Second))
			}
		}
	})
	return func() {
		close(done)
		writing.Wait()
	}
}
