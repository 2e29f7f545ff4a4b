package conf

import (
	"net/url"

	"stockade/biz/sale"
)

// Doctor says where the look before a sale finds what is outside of Stockade.
type Doctor struct {
	// PrometheusURL is where the rules of alerts are, such as http://prometheus:9090. Empty: whether anybody would be
	// woken is not checked, which is a warning.
	PrometheusURL string `yaml:"prometheusURL"`
}

// Validate returns a *sale.InputError for what cannot be the URL of a Prometheus. Credentials in it would end up in logs.
func (d Doctor) Validate() error {
	if d.PrometheusURL == "" {
		return nil
	}
	u, err := url.Parse(d.PrometheusURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return sale.BadInput("prometheusURL", "must be of the form http://host:9090, without credentials")
	}
	return nil
}
