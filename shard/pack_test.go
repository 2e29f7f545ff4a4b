package shard

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

func TestEntriesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := rapid.Int64Range(1, sale.MaxQuantity).Draw(t, "quantity")
		token := sale.Token{
			Epoch:  rapid.Int64Range(0, maxNumber).Draw(t, "epoch"),
			Change: rapid.Int64Range(0, maxNumber).Draw(t, "change"),
		}
		buyer := string(rapid.SliceOfN(rapid.Byte(), 1, sale.MaxBuyerID).Draw(t, "buyer"))
		state := rapid.SampledFrom([]byte{statePending, stateAcknowledged, stateKept, stateDoubtful, stateClosed}).Draw(t, "state")
		value := string(state) + strconv.FormatInt(quantity, 10) + " " + string(appendToken(nil, token)) + " " + buyer
		got, err := parseEntry(value)
		if want := (entry{state, quantity, token, buyer}); err != nil || got != want {
			t.Fatalf("%q read as %+v: %v", value, got, err)
		}
		if take := got.take(sale.OrderID{1}, 0); take.Acknowledged != (state == stateAcknowledged) {
			t.Fatalf("%q is the take %+v", value, take)
		}
	})
}

func TestMalformedEntriesAreErrors(t *testing.T) {
	for _, value := range []string{"", "p", "p1", "p1 ", "p1 1.2", "p 1.2 ann", "px 1.2 ann", "p1 1 ann", "p1 1.x ann"} {
		if e, err := parseEntry(value); err == nil {
			t.Errorf("%q read as %+v", value, e)
		}
	}
	good := []string{strings.Repeat("i", 16), "5", "p1 1.2 ann"}
	for at, bad := range []string{"short", "x", "p"} {
		row := append([]string{}, good...)
		row[at] = bad
		if takes, err := parseTakes(row); err == nil {
			t.Errorf("%q read as %+v", row, takes)
		}
	}
	if _, err := parseTakes(good[:2]); err == nil {
		t.Error("two thirds of a row were read")
	}
	if takes, err := parseTakes([]string{good[0], "5", ""}); err != nil || len(takes) != 1 || takes[0].Quantity != 0 {
		t.Errorf("a journal entry without order: %+v, %v", takes, err)
	}
}

// TestMalformedRepliesAreErrors gives admit replies that its script never makes.
func TestMalformedRepliesAreErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 3).Draw(t, "rows")
		reply := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 19, 34, 66, 68, 98, 300, -1}), 0, 14).Draw(t, "reply")
		f := flight{answers: make([]sale.Admission, rows)}
		r := &run{script: admitScript, reply: reply}
		for i := range rows {
			r.rows = append(r.rows, i)
		}
		if err := f.readAdmit(r); err != nil {
			return
		}
		for _, a := range f.answers {
			if a.Verdict < sale.Admitted || a.Verdict > sale.Gone {
				t.Fatalf("reply %v became %+v", reply, a)
			}
		}
	})
}

// replyError is an error as Redis sends it.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

var _ redis.Error = replyError("")

func TestOnlyRefusalsAreCertain(t *testing.T) {
	for text, want := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":        true,
		"READONLY You can't write against a read only replica.": true,
		"ERR user_script:1: failed":                             false,
		"WRONGTYPE Operation against a key":                     false,
	} {
		r := &run{script: admitScript, err: replyError(text), packed: payload{written: true}}
		if got := errors.Is(r.explain(), sale.ErrNotSent); got != want {
			t.Errorf("%q is certain: %t", text, got)
		}
	}
	r := &run{script: admitScript, err: errors.New("LOADING is what the connection said"), packed: payload{written: true}}
	if errors.Is(r.explain(), sale.ErrNotSent) {
		t.Error("only Redis itself can refuse")
	}
}
