"""Identity and permissions of clients: sessions, logins, access control."""
