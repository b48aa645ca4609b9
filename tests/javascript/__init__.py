"""The console's JavaScript: types by TypeScript's compiler, slips by Biome, and its libraries."""
