package mq

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

func validConfig() Config {
	cfg := DefaultConfig()
	cfg.URL = "amqp://guest:hunter2@localhost:5672/"
	return cfg
}

func TestDefaultConfigNeedsOnlyAURL(t *testing.T) {
	if err := validConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	if err := DefaultConfig().Validate(); err == nil || !strings.HasPrefix(err.Error(), "url:") {
		t.Fatalf("without URL: %v", err)
	}
	memory := DefaultConfig()
	memory.Driver = DriverMemory
	if err := memory.Validate(); err != nil {
		t.Fatal(err)
	}
}

// Each setting, made impossible, is refused by the name that the file has for it.
func TestValidateNamesEachSetting(t *testing.T) {
	typ := reflect.TypeFor[Config]()
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("yaml")
		cfg := validConfig()
		switch field := reflect.ValueOf(&cfg).Elem().Field(i); field.Kind() {
		case reflect.Int:
			field.SetInt(-1)
		case reflect.String:
			field.SetString("hunter2 ?")
		default:
			t.Fatalf("%s has kind %v", name, field.Kind())
		}
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "url" && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error prints the URL: %v", err)
		}
	}
	cfg := validConfig()
	cfg.HeartbeatMs = 1500
	if err := cfg.Validate(); err == nil {
		t.Error("a heartbeat of 1.5 s was taken")
	}
}

func TestBackoffDoublesWithinItsBounds(t *testing.T) {
	b := backoff{min: 10 * time.Millisecond, max: 100 * time.Millisecond}
	for range 2 {
		for _, full := range []int{10, 20, 40, 80, 100, 100} {
			if d := b.wait(); d < ms(full)/2 || d > ms(full) {
				t.Fatalf("waited %v, want %v to %v", d, ms(full)/2, ms(full))
			}
		}
		b.reset()
	}
}

// The ring against a slice, with random puts and takes.
func TestRingKeepsOrderAndLimit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		limit := 1 + rng.IntN(20)
		r := newRing(limit)
		var model []sale.Order
		next := int64(0)
		for range 100 {
			if rng.IntN(2) == 0 {
				orders := make([]sale.Order, rng.IntN(10))
				for i := range orders {
					next++
					orders[i].Quantity = next
				}
				room := min(len(orders), limit-len(model))
				model = append(model, orders[:room]...)
				if left := r.put(orders); left != len(orders)-room {
					t.Fatalf("%d left out, want %d", left, len(orders)-room)
				}
			} else {
				want := min(1+rng.IntN(10), len(model))
				if got := r.take(want); !slices.Equal(got, model[:want]) {
					t.Fatalf("took %v, want %v", got, model[:want])
				}
				model = model[want:]
			}
			if len(model) > 0 && len(r.ready) == 0 {
				t.Fatal("orders wait without a signal")
			}
		}
	}
}

func TestCutKeepsUTF8(t *testing.T) {
	if got := cut("aü", 2); got != "a" {
		t.Fatalf("%q", got)
	}
	if got := cut("aü", 3); got != "aü" {
		t.Fatalf("%q", got)
	}
}
