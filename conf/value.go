package conf

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// typeName is what people are told a key of this type holds, or "" for types that no source can set.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t == reflect.TypeFor[time.Duration]() {
			return "a duration such as 250ms or 1m30s"
		}
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "a list of texts"
		}
	}
	return ""
}

// setText sets v from its written form; lists are separated by commas. The error tells what is allowed and never
// repeats the text, which may be a secret in the wrong place.
func setText(v reflect.Value, text string) error {
	wrong := fmt.Errorf("must be %s", typeName(v.Type()))
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return wrong
		}
		v.SetBool(text == "true")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 1))
		for _, item := range strings.Split(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				v.Set(reflect.Append(v, reflect.ValueOf(item).Convert(v.Type().Elem())))
			}
		}
	default:
		if !setNumber(v, text) {
			return wrong
		}
	}
	return nil
}

// setNumber reads plain decimal digits. Other bases are refused: a leading zero would silently mean octal.
func setNumber(v reflect.Value, text string) bool {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err == nil
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return false
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return false
		}
		v.SetUint(n)
	case v.CanFloat():
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || f != f || f-f != 0 { // not a number, or infinite
			return false
		}
		v.SetFloat(f)
	}
	return true
}
