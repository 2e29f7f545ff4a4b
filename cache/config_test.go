package cache_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cache"
)

func TestConfigValidate(t *testing.T) {
	if err := cache.DefaultConfig().Validate(); err != nil {
		t.Fatalf("the default configuration is refused: %v", err)
	}
	fields := reflect.TypeFor[cache.Config]()
	for i := range fields.NumField() {
		for _, broken := range []int64{-1, 0, 1 << 40} {
			cfg := cache.DefaultConfig()
			reflect.ValueOf(&cfg).Elem().Field(i).SetInt(broken)
			var bad *sale.InputError
			if err := cfg.Validate(); !errors.As(err, &bad) || bad.Field != fields.Field(i).Tag.Get("yaml") {
				t.Errorf("%s = %d: got %v", fields.Field(i).Name, broken, err)
			}
			if _, err := cache.NewCatalogue(cfg, nil, time.Now); err == nil {
				t.Errorf("%s = %d: NewCatalogue accepted it", fields.Field(i).Name, broken)
			}
			if _, err := cache.NewFlags(cfg, time.Now); err == nil {
				t.Errorf("%s = %d: NewFlags accepted it", fields.Field(i).Name, broken)
			}
			if _, err := cache.NewRecent(cfg); err == nil {
				t.Errorf("%s = %d: NewRecent accepted it", fields.Field(i).Name, broken)
			}
		}
	}
}
