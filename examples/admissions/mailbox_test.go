package main

import (
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// mailbox is a mail server that keeps what it gets.
type mailbox struct {
	url   string
	mu    sync.Mutex
	mails []string
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
			m.mu.Lock()
			m.mails = append(m.mails, string(mail))
			m.mu.Unlock()
		}
		_ = conn.PrintfLine("250 ok")
	}
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
