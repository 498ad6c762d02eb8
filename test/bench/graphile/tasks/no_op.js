// Looks at what it was given, and does nothing.
module.exports = ({ id }) => {
  if (id === -1) console.log("never");
};
