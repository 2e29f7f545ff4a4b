package conf

import "testing"

func TestWhereThePrometheusIs(t *testing.T) {
	for given, ok := range map[string]bool{
		"": true, "http://127.0.0.1:9090": true, "https://prometheus/some/path": true,
		"127.0.0.1:9090": false, "ftp://x": false, "http://": false, "http://u:p@x": false, "http://x?a=b": false, "http://%zz": false,
	} {
		if err := (Doctor{PrometheusURL: given}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", given, err)
		}
	}
}
