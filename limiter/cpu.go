package limiter

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// procStat is where Linux tells how the processors spent their time.
const procStat = "/proc/stat"

// NewCPU returns a function that tells how busy the machine's processors were since its last call, in percent; the first
// call tells it since the start of the machine. It belongs to one goroutine. On systems other than Linux it fails.
func NewCPU() func() (percent float64, err error) {
	return newCPU(func() ([]byte, error) { return os.ReadFile(procStat) })
}

func newCPU(read func() ([]byte, error)) func() (percent float64, err error) {
	var busyBefore, allBefore uint64
	return func() (float64, error) {
		text, err := read()
		if err != nil {
			return 0, err
		}
		busy, all, err := cpuTimes(string(text))
		if err != nil {
			return 0, err
		}
		spentBusy, spent := busy-busyBefore, all-allBefore
		busyBefore, allBefore = busy, all
		if spent == 0 || spentBusy > spent { // no tick yet, or a counter went back
			return 0, nil
		}
		return 100 * float64(spentBusy) / float64(spent), nil
	}
}

// cpuTimes reads the line of all processors: user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
func cpuTimes(text string) (busy, all uint64, err error) {
	const idle, wait, counted = 3, 4, 8
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < counted || fields[0] != "cpu" {
		return 0, 0, errors.New(procStat + " does not begin with the times of all processors")
	}
	for i, field := range fields[1:min(len(fields), counted+1)] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", procStat, err)
		}
		all += n
		if i != idle && i != wait {
			busy += n
		}
	}
	return busy, all, nil
}
