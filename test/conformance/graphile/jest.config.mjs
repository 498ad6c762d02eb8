// Graphile Worker's tests import its sources. They get its library from npm, and in place of what
// reads and writes its tables the modules of this folder.
const library = '<rootDir>/node_modules/graphile-worker/dist';

export default {
  testMatch: ['<rootDir>/__tests__/*.test.ts'],
  transform: { '\\.ts$': ['babel-jest', { presets: ['@babel/preset-typescript'] }] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^\\.\\./src/main\\.ts$': '<rootDir>/main.mjs',
    '^\\.\\./src/index\\.ts$': '<rootDir>/index.mjs',
    '^\\.\\./src/deferred\\.ts$': `${library}/deferred.js`,
    '^\\./helpers\\.ts$': '<rootDir>/helpers.mjs',
  },
  testTimeout: 20000,
};
