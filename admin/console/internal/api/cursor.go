package api

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// place is the position at which a page ends. Each list uses the fields that it is ordered by.
type place struct {
	List  string    `json:"l"` // the list: a cursor of another list is invalid
	N     int64     `json:"n,omitempty"`
	Time  time.Time `json:"t,omitzero"`
	Words []string  `json:"w,omitempty"`
}

func (p place) cursor() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // unreachable: plain values always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// placeIn parses the cursor of a list, with the number of words that the list uses. It returns nil
// without a cursor.
func placeIn(list, cursor string, words int) (*place, error) {
	if cursor == "" {
		return nil, nil
	}
	var p place
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.List != list || len(p.Words) != words || p.N < 0 {
		return nil, invalid("the cursor is not one that this list has given")
	}
	return &p, nil
}

// Paging are the parameters of every list.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"8192" doc:"of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}
