package sale_test

import (
	"testing"
	"time"

	"stockade/biz/sale"
)

func TestSkewIsJudgedInBothDirections(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		want  sale.Level
	}{
		{0, sale.LevelOK},
		{100 * time.Millisecond, sale.LevelOK},
		{-100 * time.Millisecond, sale.LevelOK},
		{101 * time.Millisecond, sale.LevelWarn},
		{-101 * time.Millisecond, sale.LevelWarn},
		{time.Second, sale.LevelWarn},
		{1001 * time.Millisecond, sale.LevelFail},
		{-time.Hour, sale.LevelFail},
	} {
		f := sale.CheckRedisClock.Skew("redis", c.ahead)
		if f.Level != c.want || (f.Do == "") != (c.want == sale.LevelOK) {
			t.Errorf("%v ahead: %+v, want %s", c.ahead, f, c.want)
		}
	}
}

func TestLatencyIsJudgedByTheMedian(t *testing.T) {
	ms := func(all ...int) (took []time.Duration) {
		for _, n := range all {
			took = append(took, time.Duration(n)*time.Millisecond)
		}
		return took
	}
	for _, c := range []struct {
		took []time.Duration
		want sale.Level
	}{
		{ms(1, 900, 1, 900, 1), sale.LevelOK},
		{ms(9, 10, 10), sale.LevelWarn},
		{ms(49, 1, 49), sale.LevelWarn},
		{ms(50, 50, 1), sale.LevelFail},
		{ms(50), sale.LevelFail},
	} {
		f := sale.CheckRedisPing.Latency("redis", c.took, 10*time.Millisecond, 50*time.Millisecond, "look")
		if f.Level != c.want {
			t.Errorf("%v: %+v, want %s", c.took, f, c.want)
		}
	}
}

func TestLevelsHaveAnOrder(t *testing.T) {
	if !sale.LevelFail.Worse(sale.LevelWarn) || !sale.LevelWarn.Worse(sale.LevelOK) || sale.LevelOK.Worse(sale.LevelOK) {
		t.Error("want ok < warn < fail")
	}
}
