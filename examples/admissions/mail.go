package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/inbox"
)

var sender = mail.Address{Name: "Admissions", Address: "admissions@university.example"}

// post sends mail.
type post struct {
	host, port string
	auth       smtp.Auth
	url        string // of the service
}

func newPost(set settings) (*post, error) {
	address, err := url.Parse(set.smtpURL)
	if err != nil || address.Scheme != "smtp" || address.Hostname() == "" {
		return nil, errors.New("SMTP_URL is not like smtp://user:password@host:25")
	}
	p := &post{host: address.Hostname(), port: address.Port(), url: set.url}
	if p.port == "" {
		p.port = "25"
	}
	if password, ok := address.User.Password(); ok {
		p.auth = smtp.PlainAuth("", address.User.Username(), password, p.host)
	}
	return p, nil
}

// confirm is the job send_email. A mail cannot be part of a transaction: if the process crashes
// between the server's answer and the commit, the job runs again. So sending is the last action
// before the commit, and a second copy has the same Message-ID, by which mail servers and readers
// recognize duplicates.
func (p *post) confirm(ctx context.Context, tx pgx.Tx, m about) error {
	tag, err := tx.Exec(ctx, "UPDATE admissions.applications SET mailed_at = now() WHERE id = $1 AND mailed_at IS NULL", m.ApplicationID)
	if err != nil || tag.RowsAffected() == 0 {
		return err // mailed before
	}
	a, err := loadApplication(ctx, tx, m.ApplicationID)
	if err != nil {
		return err
	}
	job, _ := inbox.Message(ctx)
	return p.send(ctx, mail.Address{Name: a.Name, Address: a.Email}, job.ID.String(), fmt.Sprintf(
		"Dear %s,\r\n\r\nwe have your application for %s and your payment. Thank you.\r\n\r\n%s%s\r\n",
		a.Name, a.Programme, p.url, statusPath(a.ID)))
}

func (p *post) send(ctx context.Context, to mail.Address, id, text string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(p.host, p.port))
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	client, err := smtp.NewClient(conn, p.host)
	if err != nil {
		return err
	}
	if ok, _ := client.Extension("STARTTLS"); ok {
		if err := client.StartTLS(&tls.Config{ServerName: p.host}); err != nil {
			return err
		}
	}
	if p.auth != nil { // Auth refuses to send a password over an unencrypted connection that is not local
		if err := client.Auth(p.auth); err != nil {
			return err
		}
	}
	if err := errors.Join(client.Mail(sender.Address), client.Rcpt(to.Address)); err != nil {
		return err
	}
	body, err := client.Data()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: Your application is complete\r\n", sender.String(), to.String())
	fmt.Fprintf(&b, "Date: %s\r\nMessage-ID: <%s@admissions>\r\n", time.Now().Format(time.RFC1123Z), id)
	fmt.Fprintf(&b, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n%s", text)
	if _, err := body.Write(b.Bytes()); err != nil {
		return err
	}
	if err := body.Close(); err != nil { // the server accepts the mail here, or refuses it
		return err
	}
	_ = client.Quit()
	return nil
}
