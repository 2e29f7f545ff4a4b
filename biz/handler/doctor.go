package handler

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/service"
)

// Doctor checks an installation before a sale. Its only error is *sale.InputError.
type Doctor interface {
	Examine(ctx context.Context, skus []string) (service.Examination, error)
}

// Examine serves GET /admin/v1/doctor?sku=…, which may be there several times.
func (a *API) Examine(ctx context.Context, c *app.RequestContext) {
	var skus []string
	for _, value := range c.QueryArgs().PeekAll("sku") {
		skus = append(skus, string(value))
	}
	found, err := a.Doctor.Examine(ctx, skus)
	if err != nil {
		if problem := inputProblem(err); problem != nil {
			problem.Code = BadRequest
			problem.Write(c)
			return
		}
		a.fail(c, err)
		return
	}
	a.json(c, 200, found)
}
