package main

import (
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// mailbox is a mail server that stores the mails that it gets.
type mailbox struct {
	url   string
	mu    sync.Mutex
	mails []string

	refused  string // mails that contain this text are refused
	refusals []time.Time
}

func openMailbox(t *testing.T) *mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	m := &mailbox{url: "smtp://" + listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.talk(textproto.NewConn(conn))
		}
	}()
	return m
}

func (m *mailbox) talk(conn *textproto.Conn) {
	defer conn.Close()
	_ = conn.PrintfLine("220 mailbox")
	for {
		line, err := conn.ReadLine()
		switch command := strings.ToUpper(line); {
		case err != nil:
			return
		case command == "DATA":
			_ = conn.PrintfLine("354 go on")
			mail, err := conn.ReadDotBytes()
			if err != nil {
				return
			}
			if !m.take(string(mail)) {
				_ = conn.PrintfLine("451 not now")
				continue
			}
		}
		_ = conn.PrintfLine("250 ok")
	}
}

// take stores a mail, unless it is to be refused.
func (m *mailbox) take(mail string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused != "" && strings.Contains(mail, m.refused) {
		m.refusals = append(m.refusals, time.Now())
		return false
	}
	m.mails = append(m.mails, mail)
	return true
}

// refuse refuses mails that contain a text, or none if it is empty, and returns the times of
// earlier refusals.
func (m *mailbox) refuse(text string) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = text
	return m.refusals
}

// about returns the mails that contain a text.
func (m *mailbox) about(text string) (mails []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mail := range m.mails {
		if strings.Contains(mail, text) {
			mails = append(mails, mail)
		}
	}
	return mails
}
