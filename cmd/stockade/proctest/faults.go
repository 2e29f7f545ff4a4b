//go:build services

package proctest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"stockade/biz/sale"
)

// FaultTimeout bounds one exchange with a node's faults.
const FaultTimeout = 5 * time.Second

// FaultFired is the message of the log line that a node writes right before an armed fault happens.
const FaultFired = "fault fired"

// FaultAction is what happens at an armed point.
type FaultAction string

// The actions.
const (
	FaultKill  FaultAction = "kill"  // the process ends at once
	FaultError FaultAction = "error" // the step fails
	FaultPause FaultAction = "pause" // a second passes
)

// Fault is one action at one point, Count times.
type Fault struct {
	Point  sale.Point
	Action FaultAction
	Count  int
}

// FaultRequest arms a fault in place of the one before; without one it only asks what was reached.
type FaultRequest struct {
	Arm *Fault
}

// FaultReply tells how often each point was reached, and how often the armed fault will still fire. Problem is why
// nothing was armed.
type FaultReply struct {
	Problem string
	Reached map[sale.Point]int
	Left    int
}

// AskFaults makes one request of the node that listens on a socket.
func AskFaults(socket string, q FaultRequest) (reply FaultReply, err error) {
	conn, err := net.DialTimeout("unix", socket, FaultTimeout)
	if err != nil {
		return reply, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(FaultTimeout)); err != nil {
		return reply, err
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return reply, err
	}
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return reply, fmt.Errorf("faults on %s: %w", socket, err)
	}
	if reply.Problem != "" {
		return reply, errors.New(reply.Problem)
	}
	return reply, nil
}
