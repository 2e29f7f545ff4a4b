package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stockade/biz/sale"
)

// How many rows one call of a script carries; the scripts refuse more. Redis serves nobody else during a call.
const (
	admitBatch  = 128
	settleBatch = 128
	creditBatch = 128
	tellBatch   = 500
	fillBatch   = 500
	maxPage     = 1000 // of seal and overdue
)

// maxNumber bounds epochs and units in a share: Lua writes whole numbers exactly up to 14 digits.
const maxNumber = 99_999_999_999_999

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// How a take ends, as settle reads it.
const (
	endDropped         = 0
	endKept            = 1
	endDroppedUnmarked = 2
)

func ending(s *sale.Settlement) byte {
	switch {
	case s.Kept:
		return endKept
	case s.Unmarked:
		return endDroppedUnmarked
	}
	return endDropped
}

func packAdmit(b []byte, r *sale.AdmitRequest) []byte {
	b = append(b, r.Order[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Quantity))
	b = binary.BigEndian.AppendUint16(b, uint16(r.Limit))
	b = append(b, flag(r.Acknowledge), byte(len(r.Buyer)))
	return append(b, r.Buyer...)
}

func packCredit(b []byte, c *sale.Credit) []byte {
	b = append(b, c.Order[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(c.Quantity))
	b = append(b, flag(c.Counted), byte(len(c.Buyer)))
	return append(b, c.Buyer...)
}

func packSettle(b []byte, s *sale.Settlement) []byte {
	b = append(b, s.Order[:]...)
	b = append(b, ending(s), 0)
	at := len(b)
	b = appendToken(b, s.Token)
	b[at-1] = byte(len(b) - at)
	return b
}

func packTell(b []byte, id sale.OrderID, kept bool) []byte {
	b = append(b, id[:]...)
	return append(b, flag(kept))
}

func packFill(b []byte, h *sale.Holding) []byte {
	b = append(b, h.Order[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(h.Quantity))
	b = append(b, flag(h.Closed), 0, byte(len(h.Buyer)))
	at := len(b)
	b = appendToken(b, h.Token)
	b[at-2] = byte(len(b) - at)
	return append(b, h.Buyer...)
}

// appendToken writes a token as the scripts keep it: <epoch>.<change>.
func appendToken(b []byte, t sale.Token) []byte {
	b = strconv.AppendInt(b, t.Epoch, 10)
	b = append(b, '.')
	return strconv.AppendInt(b, t.Change, 10)
}

// The states of an order in a share, as its entry begins.
const (
	statePending      = 'p' // undecided
	stateAcknowledged = 'a' // undecided, and its buyer was told ACCEPTED
	stateKept         = 'k'
	stateDoubtful     = 'd' // taken once and given back
	stateClosed       = 'c'
)

// entry is what a share holds of an order.
type entry struct {
	state    byte
	quantity int64
	token    sale.Token
	buyer    string
}

// parseEntry reads the value of an order in a share: a letter for its state, its quantity, a space, its token, a space,
// and its buyer.
func parseEntry(value string) (entry, error) {
	head, rest, _ := strings.Cut(value, " ")
	token, buyer, found := strings.Cut(rest, " ")
	epoch, change, _ := strings.Cut(token, ".")
	if !found || len(head) < 2 {
		return entry{}, fmt.Errorf("shard: malformed order entry %.40q", value)
	}
	e := entry{state: head[0], buyer: buyer}
	var err [3]error
	e.quantity, err[0] = strconv.ParseInt(head[1:], 10, 64)
	e.token.Epoch, err[1] = strconv.ParseInt(epoch, 10, 64)
	e.token.Change, err[2] = strconv.ParseInt(change, 10, 64)
	if err := errors.Join(err[:]...); err != nil {
		return entry{}, fmt.Errorf("shard: malformed order entry: %w", err)
	}
	return e, nil
}

func (e entry) undecided() bool { return e.state == statePending || e.state == stateAcknowledged }

func (e entry) take(id sale.OrderID, age time.Duration) sale.PendingTake {
	return sale.PendingTake{
		Order: id, Buyer: e.buyer, Quantity: e.quantity, Token: e.token, Age: age,
		Acknowledged: e.state == stateAcknowledged,
	}
}

// parseTakes reads rows of id, age in ms and entry. A journal entry without an order is returned with its id alone: the
// journal must still get rid of it.
func parseTakes(reply []string) ([]sale.PendingTake, error) {
	if len(reply)%3 != 0 {
		return nil, fmt.Errorf("shard: %d strings where rows of 3 were expected", len(reply))
	}
	takes := make([]sale.PendingTake, 0, len(reply)/3)
	for i := 0; i < len(reply); i += 3 {
		var id sale.OrderID
		age, err := strconv.ParseInt(reply[i+1], 10, 64)
		if len(reply[i]) != len(id) || err != nil {
			return nil, fmt.Errorf("shard: malformed journal row %.40q", reply[i])
		}
		copy(id[:], reply[i])
		var e entry
		if reply[i+2] != "" {
			if e, err = parseEntry(reply[i+2]); err != nil {
				return nil, err
			}
		}
		takes = append(takes, e.take(id, ms(int(age))))
	}
	return takes, nil
}

// checkTake refuses what the packed form cannot carry.
func checkTake(buyer string, quantity int64) error {
	if len(buyer) < 1 || len(buyer) > sale.MaxBuyerID {
		return sale.BadInput("buyer", fmt.Sprintf("must have 1 to %d bytes", sale.MaxBuyerID))
	}
	if quantity < 1 || quantity > sale.MaxQuantity {
		return sale.BadInput("quantity", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxQuantity))
	}
	return nil
}

func checkEpoch(epoch int64) error {
	if epoch < 1 || epoch > maxNumber {
		return sale.BadInput("epoch", "must be a positive number of at most 14 digits")
	}
	return nil
}
