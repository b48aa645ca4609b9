"""Who a client is, and what it may do: sessions, logins, access control."""
