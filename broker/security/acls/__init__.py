"""Operations on resources, ACLs, and the authorizer."""
