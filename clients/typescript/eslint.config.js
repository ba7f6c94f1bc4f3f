import tseslint from "typescript-eslint";

export default tseslint.config({ ignores: ["src/gen/", "dist/", "*.js"] }, ...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  rules: {
    // Numbers, and errors of whatever kind, are written into messages.
    "@typescript-eslint/restrict-template-expressions": "off",
    // A void function may be written as the expression that it is.
    "@typescript-eslint/no-confusing-void-expression": "off",
  },
});
