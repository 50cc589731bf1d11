package api

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// place is where a page ends. Each list uses what it is ordered by.
type place struct {
	List  string    `json:"l"` // whose it is: another list's means nothing here
	N     int64     `json:"n,omitempty"`
	Time  time.Time `json:"t,omitzero"`
	Words []string  `json:"w,omitempty"`
}

func (p place) cursor() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of plain values
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// placeIn reads a cursor of a list, which has that many words. Without one it returns nil.
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
