package service

import (
	"encoding/base64"
	"fmt"
	"strings"
)

const (
	usualPage   = 100
	largestPage = 1000
	tokenForm   = "1 " // what a page token begins with, before it is encoded
)

// A page is which part of a list is asked for. It is told by the last entry seen, so that it outlives a sidecar and
// entries that come and go.
type page struct {
	size  int
	after string // empty for the first page
}

type pageRequest interface {
	GetPageSize() int32
	GetPageToken() string
}

func parsePage(request pageRequest) (page, error) {
	size := int(request.GetPageSize())
	if size < 0 || size > largestPage {
		return page{}, invalid("page_size", fmt.Sprint(size), fmt.Sprintf("from 0 to %d", largestPage))
	}
	if size == 0 {
		size = usualPage
	}
	if request.GetPageToken() == "" {
		return page{size: size}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(request.GetPageToken())
	after, known := strings.CutPrefix(string(text), tokenForm)
	if err != nil || !known || after == "" {
		return page{}, invalidToken(request)
	}
	return page{size: size, after: after}, nil
}

func invalidToken(request pageRequest) error {
	return invalid("page_token", request.GetPageToken(), "next_page_token of the page before")
}

// nextToken asks for what comes after this entry.
func nextToken(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenForm + last))
}
